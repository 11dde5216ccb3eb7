-- list_usage
-- `dimensions`: indexes into the array of all dimensions, in the order of the rows. Usage of
-- deleted conversations counts; an erased one has no rows.
WITH used AS (
  SELECT ARRAY[u.day::text, coalesce(c.agent_id::text, ''), coalesce(c.user_id, ''),
               u.conversation_id::text, u.model] AS place,
         u.event_count, u.input_tokens, u.output_tokens, u.cached_input_tokens
  FROM annals.usage_daily AS u
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE u.tenant_id = %(tenant_id)s
    AND (%(start_day)s::date IS NULL OR u.day >= %(start_day)s)
    AND (%(end_day)s::date IS NULL OR u.day <= %(end_day)s)
    AND (%(conversation_id)s::uuid IS NULL OR u.conversation_id = %(conversation_id)s)
    AND (%(agent_id)s::uuid IS NULL OR c.agent_id = %(agent_id)s)
    AND (%(user_id)s::text IS NULL OR c.user_id = %(user_id)s)
),
grouped AS (
  SELECT ARRAY(SELECT used.place[d.index] COLLATE "C"
               FROM unnest(%(dimensions)s::integer[]) WITH ORDINALITY AS d (index, n)
               ORDER BY d.n) AS key,
         used.*
  FROM used
)
SELECT key, sum(event_count)::bigint AS event_count,
       least(sum(input_tokens), 9223372036854775807)::bigint AS input_tokens,
       least(sum(output_tokens), 9223372036854775807)::bigint AS output_tokens,
       least(sum(cached_input_tokens), 9223372036854775807)::bigint AS cached_input_tokens
FROM grouped
WHERE %(cursor)s::text[] IS NULL OR key COLLATE "C" > %(cursor)s COLLATE "C"
GROUP BY key
ORDER BY key COLLATE "C"
LIMIT %(limit)s
