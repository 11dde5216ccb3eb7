-- list_large_conversations
SELECT conversation_id, event_count, token_count, last_event_at
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND deleted_at IS NULL AND event_count >= %(min_event_count)s
  AND (%(cursor_id)s::uuid IS NULL
       OR (event_count, conversation_id) < (%(cursor_count)s::bigint, %(cursor_id)s))
ORDER BY event_count DESC, conversation_id DESC
LIMIT %(limit)s
