SELECT c.event_count, c.current_branch, coalesce(r.event_count, 0) AS clustered_events,
       coalesce(r.embedding_model, '') AS embedding_model, coalesce(r.parameters, '') AS parameters,
       coalesce(r.branch, 0) AS clustered_branch,
       (SELECT count(*) FROM annals.topic_members AS m
        WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
          AND m.topic_id IS NULL) AS unassigned_events,
       (a.index_config ->> 'clustering_threshold')::float8 AS threshold,
       (a.index_config ->> 'min_cluster_size')::integer AS min_events
FROM annals.conversations AS c
LEFT JOIN annals.agents AS a ON a.tenant_id = c.tenant_id AND a.agent_id = c.agent_id
LEFT JOIN annals.topic_runs AS r
  ON r.tenant_id = c.tenant_id AND r.conversation_id = c.conversation_id
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
  AND c.deleted_at IS NULL
