-- Events that no summary of this conversation may cite: unknown here, deleted or erased.
SELECT c.event_id, c.seq
FROM unnest(%(event_ids)s::uuid[], %(seqs)s::bigint[]) AS c (event_id, seq)
WHERE NOT EXISTS (
  SELECT FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.seq = c.seq AND e.event_id = c.event_id
    AND e.deleted_at IS NULL AND e.erased_at IS NULL)
LIMIT 1
