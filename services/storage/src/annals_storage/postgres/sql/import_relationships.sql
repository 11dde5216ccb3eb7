INSERT INTO annals.relationships
  (tenant_id, relationship_id, type, source_kind, source_id, target_kind, target_id, score,
   metadata, source_conversation_id, target_conversation_id, created_at)
SELECT %(tenant_id)s, r.relationship_id, r.type, r.source_kind, r.source_id, r.target_kind,
       r.target_id, r.score, r.metadata,
       CASE WHEN r.source_kind <> 'external' THEN %(conversation_id)s::uuid END,
       CASE WHEN r.target_kind <> 'external' THEN %(conversation_id)s::uuid END, r.created_at
FROM json_populate_recordset(NULL::annals.relationships, %(rows)s::json) AS r
