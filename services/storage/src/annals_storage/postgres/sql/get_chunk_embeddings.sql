SELECT chunk_id, embedding FROM annals.chunks
WHERE tenant_id = %(tenant_id)s AND chunk_id = ANY(%(chunk_ids)s)
