SELECT end_user_mode FROM annals.agents
WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
