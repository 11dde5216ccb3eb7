-- Nothing happens where it exists, by its id or by its host's.
INSERT INTO annals.conversations (tenant_id, conversation_id, host_id, agent_id, session_id)
VALUES (%(tenant_id)s, %(conversation_id)s, %(host_id)s, %(agent_id)s, %(session_id)s)
ON CONFLICT DO NOTHING
