-- Not of a deleted conversation, nor outdated.
SELECT s.summary_id, s.conversation_id, s.branch, s.height, s.level, s.first_seq, s.last_seq,
       s.provider, s.model, s.token_count, s.quality_score, s.source_version, s.version,
       s.created_at, s.body, s.citations
FROM annals.summaries AS s
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE s.tenant_id = %(tenant_id)s AND s.summary_id = %(summary_id)s
  AND s.stale_at IS NULL AND c.deleted_at IS NULL
