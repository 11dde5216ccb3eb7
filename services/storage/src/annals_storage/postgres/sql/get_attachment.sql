-- get_attachment
SELECT a.*, c.deleted_at IS NULL AS visible
FROM annals.attachments AS a
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE a.tenant_id = %(tenant_id)s AND a.attachment_id = %(attachment_id)s
