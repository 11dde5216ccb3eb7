-- Adds the usage of events that this transaction stored to that of their day. Of those named,
-- what an earlier transaction stored is counted already. Under the locks of append_lock.sql.
INSERT INTO annals.usage_daily AS d
  (tenant_id, conversation_id, day, model, event_count, input_tokens, output_tokens,
   cached_input_tokens)
SELECT %(tenant_id)s, e.conversation_id, (e.created_at AT TIME ZONE 'UTC')::date,
       coalesce(e.model, ''), count(*), sum((e.usage->>'input_tokens')::bigint),
       sum((e.usage->>'output_tokens')::bigint), sum((e.usage->>'cached_input_tokens')::bigint)
FROM unnest(%(usage_event_ids)s::uuid[]) AS wanted (event_id)
CROSS JOIN LATERAL (
  SELECT * FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = wanted.event_id LIMIT 1
) AS e
CROSS JOIN LATERAL (
  SELECT o.xid FROM annals.observations AS o
  WHERE o.tenant_id = %(tenant_id)s AND o.event_id = wanted.event_id AND o.version = 1 LIMIT 1
) AS stored
WHERE stored.xid = pg_current_xact_id()
GROUP BY 1, 2, 3, 4
ON CONFLICT (tenant_id, conversation_id, day, model) DO UPDATE
SET event_count = d.event_count + excluded.event_count,
    input_tokens =
      least(d.input_tokens::numeric + excluded.input_tokens, 9223372036854775807),
    output_tokens =
      least(d.output_tokens::numeric + excluded.output_tokens, 9223372036854775807),
    cached_input_tokens =
      least(d.cached_input_tokens::numeric + excluded.cached_input_tokens, 9223372036854775807)
