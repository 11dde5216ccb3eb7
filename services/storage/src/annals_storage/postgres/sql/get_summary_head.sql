-- The newest event in view of a branch that is neither deleted nor erased; NULL without one.
SELECT max(newest.seq) AS head_seq
FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s) AS v
CROSS JOIN LATERAL (
  SELECT e.seq FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.branch = v.branch AND e.seq > v.after_seq AND e.seq <= v.until_seq
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
  ORDER BY e.seq DESC LIMIT 1
) AS newest
