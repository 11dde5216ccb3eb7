INSERT INTO annals.topic_days (tenant_id, conversation_id, day, topic_id, event_count)
SELECT c.tenant_id, c.conversation_id, (m.event_time AT TIME ZONE 'UTC')::date,
       coalesce(m.topic_id, '00000000-0000-0000-0000-000000000000'), count(*)
FROM annals.conversations AS c
CROSS JOIN LATERAL annals.branch_view(c.tenant_id, c.conversation_id, c.current_branch) AS v
JOIN annals.topic_members AS m
  ON m.tenant_id = c.tenant_id AND m.conversation_id = c.conversation_id
 AND m.branch = v.branch AND m.seq > v.after_seq AND m.seq <= v.until_seq
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
GROUP BY 1, 2, 3, 4
