-- Texts were made from events of certain versions. Where one of those changed or went since, the
-- topic goes without texts until the job that this made due has made them anew.
INSERT INTO annals.topics AS t
  (tenant_id, topic_id, conversation_id, label, summary, samples, centroid, embedding_model,
   event_count)
SELECT %(tenant_id)s, f.topic_id, %(conversation_id)s,
       CASE WHEN s.is_current THEN f.label ELSE '' END,
       CASE WHEN s.is_current THEN f.summary::jsonb ELSE '[]' END,
       CASE WHEN s.is_current THEN f.samples::jsonb ELSE '[]' END,
       f.centroid, %(embedding_model)s, 0
FROM unnest(%(topic_id)s::uuid[], %(label)s::text[], %(summary)s::text[], %(samples)s::text[],
            %(centroid)s::bytea[], %(sources)s::text[])
     AS f (topic_id, label, summary, samples, centroid, sources)
CROSS JOIN LATERAL (
  SELECT NOT EXISTS (
    SELECT FROM jsonb_to_recordset(f.sources::jsonb) AS src (seq bigint, version integer)
    WHERE NOT EXISTS (
      SELECT FROM annals.events AS e
      WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
        AND e.seq = src.seq AND e.version = src.version
        AND e.deleted_at IS NULL AND e.erased_at IS NULL)
  ) AS is_current
) AS s
ON CONFLICT (tenant_id, topic_id) DO UPDATE
SET label = excluded.label, summary = excluded.summary, samples = excluded.samples,
    centroid = excluded.centroid, embedding_model = excluded.embedding_model, updated_at = now()
WHERE t.conversation_id = excluded.conversation_id
