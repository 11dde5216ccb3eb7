-- Searches are logged after their answers: what they were about, or who made them, may have been
-- erased meanwhile. Subjects of receipts: see user_subject() in domain/erasure.py.
INSERT INTO annals.search_log
  (tenant_id, search_id, kind, query, conversation_id, hit_count, top_score, search_time_ms,
   api_key_id, user_id, session_id, created_at)
SELECT %(tenant_id)s, s.search_id, s.kind, s.query, s.conversation_id, s.hit_count, s.top_score,
       s.search_time_ms, s.api_key_id, s.user_id, s.session_id, s.created_at
FROM unnest(
  %(search_id)s::uuid[], %(kind)s::text[], %(query)s::text[], %(conversation_id)s::uuid[],
  %(hit_count)s::integer[], %(top_score)s::double precision[],
  %(search_time_ms)s::double precision[], %(api_key_id)s::uuid[], %(user_id)s::text[],
  %(session_id)s::text[], %(created_at)s::timestamptz[], %(user_subject)s::text[]
) AS s (search_id, kind, query, conversation_id, hit_count, top_score, search_time_ms, api_key_id,
        user_id, session_id, created_at, user_subject)
WHERE EXISTS (SELECT FROM annals.tenants AS t WHERE t.tenant_id = %(tenant_id)s)
  AND (s.conversation_id IS NULL OR EXISTS (
    SELECT FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = s.conversation_id))
  AND NOT EXISTS (
    SELECT FROM annals.erasure_receipts AS r
    WHERE r.tenant_id = %(tenant_id)s AND r.scope = 'user' AND r.subject = s.user_subject
      AND (r.completed_at IS NULL OR r.completed_at >= s.created_at))
