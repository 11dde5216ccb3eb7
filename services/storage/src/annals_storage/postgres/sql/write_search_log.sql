-- Searches are logged after their answers: the tenant may have been erased meanwhile.
INSERT INTO annals.search_log
  (tenant_id, search_id, kind, query, conversation_id, hit_count, top_score, search_time_ms,
   api_key_id, user_id, session_id, created_at)
SELECT %(tenant_id)s, s.*
FROM unnest(
  %(search_id)s::uuid[], %(kind)s::text[], %(query)s::text[], %(conversation_id)s::uuid[],
  %(hit_count)s::integer[], %(top_score)s::double precision[],
  %(search_time_ms)s::double precision[], %(api_key_id)s::uuid[], %(user_id)s::text[],
  %(session_id)s::text[], %(created_at)s::timestamptz[]
) AS s
WHERE EXISTS (SELECT FROM annals.tenants AS t WHERE t.tenant_id = %(tenant_id)s FOR KEY SHARE)
