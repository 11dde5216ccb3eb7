SELECT c.conversation_id, c.agent_id, c.user_id, c.session_id, a.end_user_mode AS mode
FROM annals.conversations AS c
LEFT JOIN annals.agents AS a ON a.tenant_id = c.tenant_id AND a.agent_id = c.agent_id
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = ANY(%(conversation_ids)s)
