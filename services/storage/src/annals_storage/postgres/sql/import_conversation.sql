WITH stored AS (
  INSERT INTO annals.conversations
    (tenant_id, conversation_id, agent_id, user_id, session_id, host_id, org_id, title, status,
     client_context, metadata, end_summary, provider_conversation_id, last_response_id, request_id,
     creation_hash, next_seq, event_count, message_count, token_count, memory_count, branch_count,
     current_branch, version, forked_from_conversation_id, forked_from_event_id, forked_from_seq,
     created_at, updated_at, last_event_at, active_at, ended_at, archived_at)
  SELECT %(tenant_id)s, %(conversation_id)s, r.agent_id, r.user_id, r.session_id, r.host_id,
         r.org_id, r.title, r.status, r.client_context, r.metadata, r.end_summary,
         r.provider_conversation_id, r.last_response_id, r.request_id, r.creation_hash, r.next_seq,
         r.event_count, r.message_count, r.token_count, r.memory_count, r.branch_count,
         r.current_branch, r.version, r.forked_from_conversation_id, r.forked_from_event_id,
         r.forked_from_seq, r.created_at, r.updated_at, r.last_event_at, r.active_at, r.ended_at,
         r.archived_at
  FROM json_populate_recordset(NULL::annals.conversations, %(rows)s::json) AS r
  RETURNING conversation_id
)
-- A worker may be about to carry out an erasure of the same conversation: it looks once more.
UPDATE annals.outbox AS o
SET generation = o.generation + 1
FROM stored AS s
WHERE o.tenant_id = %(tenant_id)s AND o.kind = 'conversation' AND o.key = s.conversation_id
