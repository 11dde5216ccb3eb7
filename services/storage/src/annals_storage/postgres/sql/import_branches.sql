INSERT INTO annals.branches
  (tenant_id, conversation_id, branch, parent_branch, fork_seq, view_branches, view_after,
   view_until, display_name, request_id, request_hash, created_at)
SELECT %(tenant_id)s, %(conversation_id)s, r.branch, r.parent_branch, r.fork_seq, r.view_branches,
       r.view_after, r.view_until, r.display_name, r.request_id, r.request_hash, r.created_at
FROM json_populate_recordset(NULL::annals.branches, %(rows)s::json) AS r
