-- How much there is to read of each event. Told from the rows without reading the texts; of cold
-- ones, whose words are elsewhere, from their tokens.
SELECT event_id,
       greatest(4 * token_count,
                coalesce(octet_length(content), 0) + coalesce(octet_length(tool_input), 0)
                + coalesce(octet_length(tool_result), 0)
                + coalesce(octet_length(error_message), 0)) AS bytes
FROM annals.events
WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(event_ids)s)
