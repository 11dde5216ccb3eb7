-- Keeps one conversation to so many contexts and the tenant to so many bytes: the oldest go. The
-- sum is read from the index alone; rows are ranked only where it is too large.
WITH older AS (
  SELECT request_digest, state FROM annals.context_cache
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  ORDER BY created_at DESC OFFSET %(max_of_conversation)s
),
gone_older AS (
  DELETE FROM annals.context_cache AS k USING older AS o
  WHERE k.tenant_id = %(tenant_id)s AND k.conversation_id = %(conversation_id)s
    AND k.request_digest = o.request_digest AND k.state = o.state
)
DELETE FROM annals.context_cache AS k USING (
  SELECT conversation_id, request_digest, state,
         sum(body_bytes) OVER (
           ORDER BY created_at DESC, conversation_id, request_digest, state) AS bytes_up_to_it
  FROM annals.context_cache
  WHERE tenant_id = %(tenant_id)s AND (
    SELECT sum(body_bytes) > %(max_of_tenant_bytes)s FROM annals.context_cache
    WHERE tenant_id = %(tenant_id)s)
) AS r
WHERE k.tenant_id = %(tenant_id)s AND k.conversation_id = r.conversation_id
  AND k.request_digest = r.request_digest AND k.state = r.state
  AND r.bytes_up_to_it > %(max_of_tenant_bytes)s
