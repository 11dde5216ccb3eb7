-- Work of these kinds becomes due for conversations that are there, once changes pause for a while
-- and at the latest some time after the first of them. What failed keeps its pause; what was given
-- up is tried again, for it may well succeed now. An erasure holds these rows FOR UPDATE: jobs come
-- before it or not at all.
WITH present AS MATERIALIZED (
  SELECT conversation_id FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = ANY(%(conversation_ids)s::uuid[])
    AND deleted_at IS NULL
  ORDER BY conversation_id
  FOR KEY SHARE
)
INSERT INTO annals.jobs (tenant_id, subject, kind, available_at)
SELECT %(tenant_id)s, p.conversation_id, k.kind, clock_timestamp() + %(quiet)s::interval
FROM present AS p
CROSS JOIN unnest(%(kinds)s::text[]) AS k (kind)
ORDER BY p.conversation_id, k.kind
ON CONFLICT (tenant_id, subject, kind) DO UPDATE
SET generation = jobs.generation + 1,
    attempts = CASE WHEN jobs.parked_at IS NULL THEN jobs.attempts ELSE 0 END,
    enqueued_at = CASE WHEN jobs.parked_at IS NULL THEN jobs.enqueued_at ELSE now() END,
    available_at = CASE
      WHEN jobs.parked_at IS NOT NULL THEN excluded.available_at
      WHEN jobs.attempts > 0 AND jobs.lease_hash IS NULL
      THEN greatest(jobs.available_at, excluded.available_at)
      ELSE least(excluded.available_at, jobs.enqueued_at + %(latest)s::interval) END,
    parked_at = NULL
