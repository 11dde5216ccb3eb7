-- An event takes the place of one that a revert left behind.
WITH marked AS (
  UPDATE annals.events SET superseded_by = %(event_id)s
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND seq = %(superseded_seq)s
)
INSERT INTO annals.relationships
  (tenant_id, relationship_id, type, source_kind, source_id, target_kind, target_id,
   source_conversation_id, target_conversation_id)
VALUES
  (%(tenant_id)s, %(relationship_id)s, 'supersedes', 'event', %(event_id)s::uuid::text, 'event',
   %(superseded_event_id)s::uuid::text, %(conversation_id)s, %(conversation_id)s)
ON CONFLICT ON CONSTRAINT relationships_once DO NOTHING
