-- The state contexts of a conversation depend on, and the one that was kept in it. Whatever else
-- comes to change contexts without changing the conversation's version belongs into this row.
-- Not settled: the mirror lags behind, or processes may still go by parameters or a generation of
-- the mirror that changed a moment ago.
WITH now_is AS MATERIALIZED (
  SELECT c.version,
         sha256(convert_to(row(
           c.version, c.current_branch, c.agent_id, a.updated_at, p.updated_at, g.serving,
           (SELECT max(greatest(s.created_at, s.stale_at)) FROM annals.summaries AS s
            WHERE s.tenant_id = %(tenant_id)s AND s.conversation_id = %(conversation_id)s),
           %(code_version)s::text, (now() AT TIME ZONE 'UTC')::date
         )::text, 'UTF8')) AS state,
         NOT g.is_changing
           AND coalesce(p.updated_at < now() - interval '15 seconds', true)
           AND NOT EXISTS (
             SELECT FROM annals.outbox AS o
             WHERE o.tenant_id = %(tenant_id)s AND o.conversation_id = %(conversation_id)s
           ) AS is_settled
  FROM annals.conversations AS c
  LEFT JOIN annals.agents AS a ON a.tenant_id = c.tenant_id AND a.agent_id = c.agent_id
  LEFT JOIN annals.search_parameters AS p ON p.tenant_id = c.tenant_id
  CROSS JOIN (
    SELECT max(number) FILTER (WHERE state = 'serving') AS serving,
           count(*) > 1 AND coalesce(bool_or(
             state = 'serving' AND changed_at > now() - interval '15 seconds'), true) AS is_changing
    FROM public.annals_mirror_generations
  ) AS g
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
    AND c.deleted_at IS NULL
)
SELECT n.version, n.state, n.is_settled, k.body
FROM now_is AS n
LEFT JOIN annals.context_cache AS k
  ON k.tenant_id = %(tenant_id)s AND k.conversation_id = %(conversation_id)s
  AND k.request_digest = %(request_digest)s AND k.state = n.state AND k.expires_at > now()
  AND n.is_settled AND k.state IS DISTINCT FROM %(held_state)s::bytea
