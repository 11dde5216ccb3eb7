-- Events as they are now, with what the engine filters by. Without branches everything is in
-- view and no view is looked up.
SELECT e.*,
       c.deleted_at IS NOT NULL OR e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL AS deleted,
       CASE WHEN c.branch_count = 1 THEN true ELSE EXISTS (
         SELECT FROM annals.branch_view(%(tenant_id)s, e.conversation_id, c.current_branch) AS v
         WHERE v.branch = e.branch AND v.after_seq < e.seq AND e.seq <= v.until_seq
       ) END AS current,
       c.agent_id, c.user_id, c.session_id
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at, agent_id, user_id, session_id, current_branch, branch_count
  FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s)
