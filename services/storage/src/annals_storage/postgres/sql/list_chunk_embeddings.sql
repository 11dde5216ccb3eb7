-- Events with their vectors by one model and the topic they are in. Those that wait to be mirrored
-- are left out: their vectors may be of former words, and once they are mirrored a job is due.
SELECT e.event_id, e.seq, e.version, e.type, e.event_time, k.embeddings, m.topic_id
FROM (
  SELECT e.event_id, e.seq, e.version, e.type, e.event_time
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.seq > %(after_seq)s AND e.deleted_at IS NULL AND e.erased_at IS NULL
    AND (%(changed_only)s = false OR NOT EXISTS (
      SELECT FROM annals.topic_members AS m
      WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
        AND m.seq = e.seq AND m.event_version = e.version))
    AND NOT EXISTS (
      SELECT FROM annals.outbox AS o
      WHERE o.tenant_id = %(tenant_id)s AND o.kind = 'event' AND o.key = e.event_id)
    AND EXISTS (
      SELECT FROM annals.chunks AS k
      WHERE k.tenant_id = %(tenant_id)s AND k.event_id = e.event_id
        AND k.embedding_model = %(embedding_model)s)
  ORDER BY e.seq LIMIT %(limit)s
) AS e
CROSS JOIN LATERAL (
  SELECT array_agg(c.embedding ORDER BY c.chunk_index) AS embeddings
  FROM (
    SELECT k.embedding, k.chunk_index FROM annals.chunks AS k
    WHERE k.tenant_id = %(tenant_id)s AND k.event_id = e.event_id
      AND k.embedding_model = %(embedding_model)s
    ORDER BY k.chunk_index LIMIT %(max_chunks)s
  ) AS c
) AS k
LEFT JOIN annals.topic_members AS m
  ON m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s AND m.seq = e.seq
ORDER BY e.seq
