-- Everything of a conversation but its events. Under erase_lock.sql.
WITH gone_branches AS (
  DELETE FROM annals.branches
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_append_requests AS (
  DELETE FROM annals.append_requests
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_fork_requests AS (
  DELETE FROM annals.fork_requests
  WHERE tenant_id = %(tenant_id)s
    AND (conversation_id = %(conversation_id)s OR new_conversation_id = %(conversation_id)s)
  RETURNING 1
),
gone_memories AS (
  DELETE FROM annals.memories
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING memory_id
),
gone_relationships AS (
  DELETE FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s
    AND (source_conversation_id = %(conversation_id)s
         OR target_conversation_id = %(conversation_id)s
         OR (source_kind = 'conversation' AND source_id = %(conversation_id)s::text)
         OR (target_kind = 'conversation' AND target_id = %(conversation_id)s::text))
  RETURNING 1
),
gone_attachments AS (
  DELETE FROM annals.attachments
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_usage AS (
  DELETE FROM annals.usage_daily
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_provider_logs AS (
  DELETE FROM annals.provider_logs
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_search_log AS (
  DELETE FROM annals.search_log
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_contexts AS (
  DELETE FROM annals.context_cache
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_segments AS (
  DELETE FROM annals.cold_segments
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_summaries AS (
  DELETE FROM annals.summaries
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_summary_runs AS (
  DELETE FROM annals.summary_runs
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_topics AS (
  DELETE FROM annals.topics
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
gone_topic_members AS (
  DELETE FROM annals.topic_members
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
gone_topic_days AS (
  DELETE FROM annals.topic_days
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
gone_topic_runs AS (
  DELETE FROM annals.topic_runs
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
gone_conversation AS (
  DELETE FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s RETURNING 1
),
-- Entries that wait or are being worked on find nothing when they are read again, and the engine
-- forgets. A lease is left alone: who holds it may still write, and then hands the key back.
stale AS (
  UPDATE annals.outbox
  SET generation = generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      available_at = CASE WHEN lease_owner IS NULL THEN now() ELSE available_at END
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND kind <> 'conversation'
),
enqueued AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  SELECT %(tenant_id)s, 'conversation', %(conversation_id)s, %(conversation_id)s
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
)
SELECT (SELECT count(*) FROM gone_branches) AS branches,
       (SELECT count(*) FROM gone_append_requests) AS append_requests,
       (SELECT count(*) FROM gone_fork_requests) AS fork_requests,
       (SELECT count(*) FROM gone_memories) AS memories,
       (SELECT count(*) FROM gone_relationships) AS relationships,
       (SELECT count(*) FROM gone_attachments) AS attachments,
       (SELECT count(*) FROM gone_usage) AS usage,
       (SELECT count(*) FROM gone_provider_logs) AS provider_logs,
       (SELECT count(*) FROM gone_search_log) AS search_log,
       (SELECT count(*) FROM gone_contexts) AS cached_contexts,
       (SELECT count(*) FROM gone_segments) AS cold_segments,
       (SELECT count(*) FROM gone_summaries) AS summaries,
       (SELECT count(*) FROM gone_summary_runs) AS summary_runs,
       (SELECT count(*) FROM gone_topics) AS topics,
       (SELECT count(*) FROM gone_conversation) AS conversations
