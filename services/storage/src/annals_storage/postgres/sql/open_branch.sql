-- Numbers follow the order of creation: the row of the conversation is locked.
WITH counted AS (
  UPDATE annals.conversations
  SET branch_count = branch_count + 1, version = version + 1, updated_at = now()
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  RETURNING branch_count
)
INSERT INTO annals.branches
  (tenant_id, conversation_id, branch, parent_branch, fork_seq, view_branches, view_after,
   view_until, display_name, request_id, request_hash)
SELECT %(tenant_id)s, %(conversation_id)s, branch_count, %(parent_branch)s, %(fork_seq)s,
       %(branches)s::integer[], %(afters)s::bigint[], %(untils)s::bigint[],
       %(display_name)s, %(request_id)s, %(request_hash)s
FROM counted
RETURNING branch
