-- upsert_relationship
INSERT INTO annals.relationships AS r
  (tenant_id, relationship_id, type, source_kind, source_id, target_kind, target_id, score,
   metadata, source_conversation_id, target_conversation_id)
VALUES
  (%(tenant_id)s, %(relationship_id)s, %(type)s, %(source_kind)s, %(source_id)s, %(target_kind)s,
   %(target_id)s, %(score)s, %(metadata)s, %(source_conversation_id)s, %(target_conversation_id)s)
ON CONFLICT ON CONSTRAINT relationships_once
DO UPDATE SET score = excluded.score, metadata = excluded.metadata
RETURNING *
