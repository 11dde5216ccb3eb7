SELECT e.*,
       c.deleted_at IS NOT NULL OR e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL AS deleted, c.agent_id, c.user_id, c.session_id
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at, agent_id, user_id, session_id FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s)
