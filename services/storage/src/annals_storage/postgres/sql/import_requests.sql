INSERT INTO annals.append_requests
  (tenant_id, conversation_id, request_id, payload_hash, event_ids, created_at)
SELECT %(tenant_id)s, %(conversation_id)s, r.request_id, r.payload_hash, r.event_ids, r.created_at
FROM json_populate_recordset(NULL::annals.append_requests, %(rows)s::json) AS r
