UPDATE annals.erasure_receipts AS r
SET counts = (
  SELECT jsonb_object_agg(kind, coalesce((r.counts ->> kind)::bigint, 0)
                                + coalesce((%(counts)s::jsonb ->> kind)::bigint, 0))
  FROM jsonb_object_keys(r.counts || %(counts)s::jsonb) AS kind
)
WHERE tenant_id = %(tenant_id)s AND receipt_id = %(receipt_id)s AND completed_at IS NULL
