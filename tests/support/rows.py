"""A row in every table, of whoever may own the feature behind it."""

from __future__ import annotations

from typing import Any

from tests.support.scratch import as_tenant, run

SOME = "11111111-1111-4111-8111-111111111111"

INSERTS: dict[str, str] = {
    "topics": """
        (tenant_id, topic_id, conversation_id, centroid, embedding_model, event_count)
        VALUES (%(tenant)s, %(some)s, %(room)s, '', 'm', 1)""",
    "topic_members": """
        (tenant_id, conversation_id, seq, branch, event_version, event_time)
        VALUES (%(tenant)s, %(room)s, 1, 1, 1, now())""",
    "topic_days": """
        (tenant_id, conversation_id, day, topic_id, event_count)
        VALUES (%(tenant)s, %(room)s, '2026-01-01', %(some)s, 1)""",
    "topic_runs": """
        (tenant_id, conversation_id, branch, event_count, embedding_model, parameters)
        VALUES (%(tenant)s, %(room)s, 1, 1, 'm', '')""",
    "jobs": """
        (tenant_id, subject, kind) VALUES (%(tenant)s, %(some)s, 'topics')""",
    "signing_keys": """
        (tenant_id, signing_key_id, display_name, algorithm, public_key_pem, issuer, audience)
        VALUES (%(tenant)s, %(some)s, 'k', 'ES256', 'pem', 'iss', 'aud')""",
    "session_merges": """
        (tenant_id, session_id, user_id, moved_count) VALUES (%(tenant)s, 's', 'u', 1)""",
    "branches": """
        (tenant_id, conversation_id, branch, parent_branch, fork_seq,
         view_branches, view_after, view_until)
        VALUES (%(tenant)s, %(room)s, 2, 1, 1, '{1}', '{0}', '{1}')""",
    "observation_payloads": """
        (tenant_id, event_id, version, payload) VALUES (%(tenant)s, %(some)s, 1, '{"a": 1}')""",
    "fork_requests": """
        (tenant_id, conversation_id, request_id, request_hash, new_conversation_id)
        VALUES (%(tenant)s, %(room)s, %(some)s, '', %(some)s)""",
    "cold_segments": """
        (tenant_id, segment_id, conversation_id, first_seq, last_seq, event_count, path, sha256,
         stored_bytes)
        VALUES (%(tenant)s, %(some)s, %(room)s, 1, 2, 2, 'p', '', 1)""",
    "memories": """
        (tenant_id, memory_id, conversation_id, content, payload_hash)
        VALUES (%(tenant)s, %(some)s, %(room)s, 'm', '')""",
    "summaries": """
        (tenant_id, summary_id, conversation_id, branch, height, level, first_seq, last_seq,
         provider, model, body, token_count, quality_score, citations, source_version)
        VALUES (%(tenant)s, %(some)s, %(room)s, 1, 0, 'brief', 1, 1, 'p', 'm', 'b', 1, 0.5, '[]',
                'v')""",
    "summary_runs": """
        (tenant_id, run_id, conversation_id, provider, model, status, summary_count, input_tokens,
         output_tokens, cost_micros, started_at)
        VALUES (%(tenant)s, %(some)s, %(room)s, 'p', 'm', 'completed', 1, 1, 1, 0, now())""",
    "relationships": """
        (tenant_id, relationship_id, type, source_kind, source_id, target_kind, target_id)
        VALUES (%(tenant)s, %(some)s, 'RELATED', 'conversation', 'a', 'conversation', 'b')""",
    "attachments": """
        (tenant_id, attachment_id, conversation_id, uri)
        VALUES (%(tenant)s, %(some)s, %(room)s, 'file:a')""",
    "usage_daily": """
        (tenant_id, conversation_id, day, model, event_count, input_tokens, output_tokens,
         cached_input_tokens)
        VALUES (%(tenant)s, %(room)s, '2026-01-01', 'm', 1, 1, 1, 1)""",
    "provider_logs": """
        (tenant_id, provider_log_id, conversation_id, provider, request_json, response_json,
         latency_ms, expires_at)
        VALUES (%(tenant)s, %(some)s, %(room)s, 'p', '{}', '{}', 1, now())""",
    "context_cache": """
        (tenant_id, conversation_id, request_digest, state, context_version, body, body_bytes,
         expires_at)
        VALUES (%(tenant)s, %(room)s, sha256('a'), sha256('b'), 'v', 'body', 4, now())""",
    "search_parameters": """
        (tenant_id, overrides) VALUES (%(tenant)s, '{"time_bonus": 0.1}')""",
    "search_log": """
        (tenant_id, search_id, kind, query, hit_count, top_score, search_time_ms)
        VALUES (%(tenant)s, %(some)s, 'events', 'q', 0, 0, 1)""",
    "retention_policies": """
        (tenant_id, agent_id, archive_after_days) VALUES (%(tenant)s, %(some)s, 1)""",
    "erasure_receipts": """
        (tenant_id, receipt_id, scope, subject, counts, started_at)
        VALUES (%(tenant)s, %(some)s, 'event', 's', '{"events": 1}', now())""",
}
"""What follows `INSERT INTO annals.<table>` for tables that a few appends leave empty."""


def fill(url: str, tenant_id: str, conversation_id: str) -> None:
    """Insert, as the service's role, a row into each of these tables that has none yet."""
    params: dict[str, Any] = {"tenant": tenant_id, "room": conversation_id, "some": SOME}
    for table, rest in INSERTS.items():
        if not as_tenant(url, tenant_id, f"SELECT FROM annals.{table} LIMIT 1"):
            as_tenant(url, tenant_id, f"INSERT INTO annals.{table} {rest}", params)


def tables(url: str) -> list[str]:
    """The names of all tables of ours."""
    rows = run(
        url,
        "SELECT c.relname AS name FROM pg_class AS c"
        " WHERE c.relnamespace = 'annals'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1",
    )
    return [row["name"] for row in rows]
