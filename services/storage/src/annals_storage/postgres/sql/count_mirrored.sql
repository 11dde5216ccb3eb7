-- What belongs into the mirror. The chunks of what is deleted stay, for a restore, but must not
-- be in the mirror.
SELECT (
  SELECT count(*)
  FROM annals.chunks AS k
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE k.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
    AND NOT EXISTS (
      SELECT FROM annals.events AS e
      WHERE e.tenant_id = %(tenant_id)s AND e.event_id = k.event_id
        AND (e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL))
) + (
  SELECT count(*)
  FROM annals.memories AS m
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE m.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL AND m.embedding IS NOT NULL
) AS chunks
