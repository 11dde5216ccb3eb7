-- insert_attachment
-- Under the lock of lock_relationship_ends.sql. An id that is taken inserts nothing.
INSERT INTO annals.attachments
  (tenant_id, attachment_id, conversation_id, uri, media_type, file_name, size_bytes, sha256,
   metadata)
VALUES
  (%(tenant_id)s, %(attachment_id)s, %(conversation_id)s, %(uri)s, %(media_type)s, %(file_name)s,
   %(size_bytes)s, %(sha256)s, %(metadata)s)
ON CONFLICT DO NOTHING
