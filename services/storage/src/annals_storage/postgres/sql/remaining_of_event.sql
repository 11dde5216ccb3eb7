-- A summary made since is of what is left in its range; one that cites the event never is.
SELECT (SELECT count(*) FROM annals.events
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s AND erased_at IS NULL) AS events,
       (SELECT count(*) FROM annals.observations
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS observations,
       (SELECT count(*) FROM annals.observation_payloads
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS observation_payloads,
       (SELECT count(*) FROM annals.chunks
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS chunks,
       -- Those that were assembled without it may be there again.
       (SELECT count(*) FROM annals.events AS e
        JOIN annals.context_cache AS k USING (tenant_id, conversation_id)
        WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s
          AND k.created_at <= e.erased_at) AS cached_contexts,
       (SELECT count(*) FROM annals.relationships
        WHERE tenant_id = %(tenant_id)s
          AND ((source_kind = 'event' AND source_id = %(event_id)s::text)
               OR (target_kind = 'event' AND target_id = %(event_id)s::text))) AS relationships,
       (SELECT count(*) FROM annals.events AS e
        JOIN annals.summaries AS s USING (tenant_id, conversation_id)
        WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s
          AND s.first_seq <= e.seq AND s.last_seq >= e.seq
          AND (s.created_at <= e.erased_at
               OR s.citations @> jsonb_build_array(jsonb_build_object('seq', e.seq)))) AS summaries,
       (SELECT count(*) FROM annals.events AS e
        JOIN annals.topic_members AS m USING (tenant_id, conversation_id, seq)
        WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s) AS topics
