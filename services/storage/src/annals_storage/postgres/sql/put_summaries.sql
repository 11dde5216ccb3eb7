-- Under the lock of the conversation.
INSERT INTO annals.summaries AS s
  (tenant_id, summary_id, conversation_id, branch, height, level, first_seq, last_seq, provider,
   model, body, token_count, quality_score, citations, source_version)
SELECT %(tenant_id)s, r.summary_id, %(conversation_id)s, r.branch, r.height, r.level, r.first_seq,
       r.last_seq, r.provider, r.model, r.body, r.token_count, r.quality_score, r.citations,
       r.source_version
FROM json_populate_recordset(NULL::annals.summaries, %(rows)s::json) AS r
ON CONFLICT ON CONSTRAINT summaries_once DO UPDATE
SET last_seq = excluded.last_seq, model = excluded.model, body = excluded.body,
    token_count = excluded.token_count, quality_score = excluded.quality_score,
    citations = excluded.citations, source_version = excluded.source_version,
    version = s.version + 1, created_at = clock_timestamp(), stale_at = NULL
RETURNING summary_id, conversation_id, branch, height, level, first_seq, last_seq, provider, model,
          token_count, quality_score, source_version, version, created_at
