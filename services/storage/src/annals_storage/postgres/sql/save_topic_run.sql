INSERT INTO annals.topic_runs
  (tenant_id, conversation_id, branch, event_count, embedding_model, parameters)
SELECT tenant_id, conversation_id, current_branch, %(clustered_events)s, %(embedding_model)s,
       %(parameters)s
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
ON CONFLICT (tenant_id, conversation_id) DO UPDATE
SET branch = excluded.branch, event_count = excluded.event_count,
    embedding_model = excluded.embedding_model, parameters = excluded.parameters,
    clustered_at = now()
