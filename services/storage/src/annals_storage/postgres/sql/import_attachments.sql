INSERT INTO annals.attachments
  (tenant_id, attachment_id, conversation_id, uri, media_type, file_name, size_bytes, sha256,
   metadata, created_at)
SELECT %(tenant_id)s, r.attachment_id, %(conversation_id)s, r.uri, r.media_type, r.file_name,
       r.size_bytes, r.sha256, r.metadata, r.created_at
FROM json_populate_recordset(NULL::annals.attachments, %(rows)s::json) AS r
