-- list_attachments
SELECT a.*
FROM annals.attachments AS a
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE a.tenant_id = %(tenant_id)s AND a.conversation_id = %(conversation_id)s
  AND c.deleted_at IS NULL
  AND (%(cursor_id)s::uuid IS NULL
       OR (a.created_at, a.attachment_id) < (%(cursor_time)s, %(cursor_id)s))
ORDER BY a.created_at DESC, a.attachment_id DESC
LIMIT %(limit)s
