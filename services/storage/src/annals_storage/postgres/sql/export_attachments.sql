SELECT a.* FROM annals.attachments AS a
WHERE a.tenant_id = %(tenant_id)s AND a.conversation_id = %(conversation_id)s
  AND (a.created_at, a.attachment_id)
      > (%(after_created_at)s::timestamptz, %(after_attachment_id)s::uuid)
ORDER BY a.created_at, a.attachment_id
LIMIT %(limit)s
