-- What changes with every event in view of a range: which there are, and their versions.
SELECT (
  SELECT encode(sha256(convert_to(
           coalesce(string_agg(e.seq || ':' || e.version, ',' ORDER BY e.seq), ''), 'UTF8')), 'hex')
  FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s) AS v
  JOIN annals.events AS e
    ON e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.branch = v.branch AND e.seq > v.after_seq AND e.seq <= v.until_seq
  WHERE e.seq >= r.first_seq AND e.seq <= r.last_seq
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
) AS source_version
FROM unnest(%(first_seqs)s::bigint[], %(last_seqs)s::bigint[])
     WITH ORDINALITY AS r (first_seq, last_seq, place)
ORDER BY r.place
