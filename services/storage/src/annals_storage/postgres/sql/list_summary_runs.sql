SELECT run_id, conversation_id, provider, model, status, summary_count, input_tokens,
       output_tokens, cost_micros, error, started_at, ended_at
FROM annals.summary_runs
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND (%(cursor_id)s::uuid IS NULL OR (ended_at, run_id) < (%(cursor_time)s, %(cursor_id)s))
ORDER BY ended_at DESC, run_id DESC
LIMIT %(limit)s
