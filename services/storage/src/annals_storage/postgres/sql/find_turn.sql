-- The event that a store of a turn is about: the one in view on the current branch, else the
-- newest. A turn has at most one event on each branch, and at most one of them is in view.
SELECT e.*,
       EXISTS (
         SELECT FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s) AS part
         WHERE part.branch = e.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
       ) AS in_view
FROM annals.events AS e
WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
  AND e.turn_id = %(turn_id)s
ORDER BY in_view DESC, e.seq DESC
LIMIT 1
