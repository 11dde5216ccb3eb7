SELECT (SELECT count(*) FROM annals.events
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s AND erased_at IS NULL) AS events,
       (SELECT count(*) FROM annals.observations
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS observations,
       (SELECT count(*) FROM annals.observation_payloads
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS observation_payloads,
       (SELECT count(*) FROM annals.chunks
        WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s) AS chunks,
       (SELECT count(*) FROM annals.relationships
        WHERE tenant_id = %(tenant_id)s
          AND ((source_kind = 'event' AND source_id = %(event_id)s::text)
               OR (target_kind = 'event' AND target_id = %(event_id)s::text))) AS relationships,
       (SELECT count(*) FROM annals.events AS e
        JOIN annals.topic_members AS m USING (tenant_id, conversation_id, seq)
        WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s) AS topics
