-- What changed or went since the worker read it is left to the job that this made due.
INSERT INTO annals.topic_members
  (tenant_id, conversation_id, seq, topic_id, branch, event_version, event_time)
SELECT %(tenant_id)s, %(conversation_id)s, e.seq, a.topic_id, e.branch, e.version, e.event_time
FROM unnest(%(seqs)s::bigint[], %(versions)s::integer[], %(topic_ids)s::uuid[])
     AS a (seq, version, topic_id)
JOIN annals.events AS e
  ON e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s AND e.seq = a.seq
WHERE e.version = a.version AND e.deleted_at IS NULL AND e.erased_at IS NULL
ON CONFLICT (tenant_id, conversation_id, seq) DO UPDATE
SET topic_id = excluded.topic_id, event_version = excluded.event_version,
    event_time = excluded.event_time
