-- Records a run and forgets those behind the newest ones. Under the lock of the conversation.
WITH forgotten AS (
  DELETE FROM annals.summary_runs
  WHERE tenant_id = %(tenant_id)s AND run_id IN (
    SELECT run_id FROM annals.summary_runs
    WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    ORDER BY ended_at DESC, run_id DESC
    OFFSET %(max_runs)s - 1)
)
INSERT INTO annals.summary_runs
  (tenant_id, run_id, conversation_id, provider, model, status, summary_count, input_tokens,
   output_tokens, cost_micros, error, started_at)
VALUES
  (%(tenant_id)s, %(run_id)s, %(conversation_id)s, %(provider)s, %(model)s, %(status)s,
   %(summary_count)s, %(input_tokens)s, %(output_tokens)s, %(cost_micros)s, %(error)s,
   %(started_at)s)
RETURNING run_id, conversation_id, provider, model, status, summary_count, input_tokens,
          output_tokens, cost_micros, error, started_at, ended_at
