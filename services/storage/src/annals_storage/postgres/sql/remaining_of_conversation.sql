SELECT (SELECT count(*) FROM annals.conversations
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS conversations,
       (SELECT count(*) FROM annals.events
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS events,
       (SELECT count(*) FROM annals.observations
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS observations,
       (SELECT count(*) FROM annals.chunks
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS chunks,
       (SELECT count(*) FROM annals.branches
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS branches,
       (SELECT count(*) FROM annals.append_requests
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s)
         AS append_requests,
       (SELECT count(*) FROM annals.context_cache
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s)
         AS cached_contexts,
       (SELECT count(*) FROM annals.fork_requests
        WHERE tenant_id = %(tenant_id)s
          AND (conversation_id = %(conversation_id)s
               OR new_conversation_id = %(conversation_id)s)) AS fork_requests,
       (SELECT count(*) FROM annals.memories
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS memories,
       (SELECT count(*) FROM annals.relationships
        WHERE tenant_id = %(tenant_id)s
          AND (source_conversation_id = %(conversation_id)s
               OR target_conversation_id = %(conversation_id)s
               OR (source_kind = 'conversation' AND source_id = %(conversation_id)s::text)
               OR (target_kind = 'conversation' AND target_id = %(conversation_id)s::text)))
         AS relationships,
       (SELECT count(*) FROM annals.attachments
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS attachments,
       (SELECT count(*) FROM annals.usage_daily
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS usage,
       (SELECT count(*) FROM annals.provider_logs
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS provider_logs,
       (SELECT count(*) FROM annals.search_log
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS search_log,
       (SELECT count(*) FROM annals.topics
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s)
       + (SELECT count(*) FROM annals.topic_members
          WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s)
       + (SELECT count(*) FROM annals.topic_days
          WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS topics,
       (SELECT count(*) FROM annals.cold_segments
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS cold_segments,
       (SELECT count(*) FROM annals.summaries
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS summaries,
       (SELECT count(*) FROM annals.summary_runs
        WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s) AS summary_runs
