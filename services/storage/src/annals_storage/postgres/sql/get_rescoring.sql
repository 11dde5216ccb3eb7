-- What a search compares its best candidates by, beside the engine's scores.
SELECT c.chunk_id, c.token_signs, e.author_name, e.role, e.token_count, e.event_time
FROM annals.chunks AS c
JOIN annals.events AS e ON e.tenant_id = c.tenant_id AND e.event_id = c.event_id
WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = ANY(%(chunk_ids)s)
