-- The embedding by the model that serves takes the place of the one by the former model.
UPDATE annals.memories AS m
SET embedding = CASE WHEN fits THEN m.other_embedding ELSE m.embedding END,
    embedding_model = CASE WHEN fits THEN m.other_embedding_model ELSE m.embedding_model END,
    caller_embedding = m.caller_embedding AND NOT fits,
    other_embedding = NULL, other_embedding_model = NULL, other_embedding_version = NULL
FROM (
  SELECT memory_id, other_embedding_model = %(embedding_model)s
         AND other_embedding_version = version
         AND embedding_model IS DISTINCT FROM %(embedding_model)s AS fits
  FROM annals.memories
  WHERE tenant_id = %(tenant_id)s AND other_embedding IS NOT NULL
) AS held
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = held.memory_id
