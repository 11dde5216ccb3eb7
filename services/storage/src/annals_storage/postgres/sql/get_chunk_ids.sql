SELECT chunk_id FROM annals.chunks
WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(event_ids)s)
  AND embedding_model <> ALL(%(other_models)s::text[])
