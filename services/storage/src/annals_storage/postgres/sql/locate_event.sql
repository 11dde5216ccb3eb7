-- A visible event, and the branch whose view to see it in: the current one, else its own.
SELECT e.*,
       CASE WHEN EXISTS (
         SELECT FROM annals.branch_view(e.tenant_id, e.conversation_id, c.current_branch) AS v
         WHERE v.branch = e.branch AND e.seq > v.after_seq AND e.seq <= v.until_seq
       ) THEN c.current_branch ELSE e.branch END AS view_branch
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at, current_branch FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s AND c.deleted_at IS NULL
  AND e.deleted_at IS NULL AND e.erased_at IS NULL
