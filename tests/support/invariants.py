"""What must hold in the tables whatever was written, by whom and how it was interrupted."""

from __future__ import annotations

from typing import Any

from tests.support.scratch import run

_COUNTERS = """
SELECT c.conversation_id, c.next_seq, c.event_count, c.message_count, c.token_count,
       c.memory_count, c.branch_count, e.*, m.memories, b.branches
FROM annals.conversations AS c
CROSS JOIN LATERAL (
  SELECT count(*) AS stored, count(DISTINCT seq) AS places, coalesce(min(seq), 1) AS first_seq,
         coalesce(max(seq), 0) AS last_seq,
         count(*) FILTER (WHERE shown) AS events,
         count(*) FILTER (WHERE shown AND type = 'message') AS messages,
         coalesce(sum(tokens) FILTER (WHERE shown), 0) AS tokens
  FROM (
    SELECT seq, type, token_count AS tokens, deleted_at IS NULL AND erased_at IS NULL AS shown
    FROM annals.events AS e
    WHERE e.tenant_id = c.tenant_id AND e.conversation_id = c.conversation_id
  ) AS own
) AS e
CROSS JOIN LATERAL (
  SELECT count(*) AS memories FROM annals.memories AS m
  WHERE m.tenant_id = c.tenant_id AND m.conversation_id = c.conversation_id
) AS m
CROSS JOIN LATERAL (
  SELECT count(*) + 1 AS branches FROM annals.branches AS b
  WHERE b.tenant_id = c.tenant_id AND b.conversation_id = c.conversation_id
) AS b
WHERE c.tenant_id = %(tenant_id)s
  AND (c.next_seq - 1, c.next_seq - 1, c.next_seq - 1, 1, c.event_count, c.message_count,
       c.token_count, c.memory_count, c.branch_count)
      IS DISTINCT FROM
      (stored, places, last_seq, first_seq, events, messages, tokens, memories, branches)
"""
_HISTORIES = """
SELECT e.event_id, e.version, o.observations, o.newest, p.payloads
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT count(*) AS observations, max(o.version) AS newest FROM annals.observations AS o
  WHERE o.tenant_id = e.tenant_id AND o.event_id = e.event_id
) AS o
CROSS JOIN LATERAL (
  SELECT count(*) AS payloads FROM annals.observation_payloads AS p
  WHERE p.tenant_id = e.tenant_id AND p.event_id = e.event_id
) AS p
WHERE e.tenant_id = %(tenant_id)s AND e.erased_at IS NULL
  AND (e.version, e.version, e.version - 1) IS DISTINCT FROM (observations, newest, payloads)
"""
_BRANCHES = """
SELECT e.event_id, e.branch, e.seq, b.fork_seq
FROM annals.events AS e
LEFT JOIN annals.branches AS b
  ON b.tenant_id = e.tenant_id AND b.conversation_id = e.conversation_id AND b.branch = e.branch
WHERE e.tenant_id = %(tenant_id)s AND e.branch <> 1
  AND (b.branch IS NULL OR b.fork_seq >= e.seq)
"""
_STRAYS = """
SELECT o.event_id FROM annals.observations AS o
LEFT JOIN annals.events AS e ON e.tenant_id = o.tenant_id AND e.event_id = o.event_id
WHERE o.tenant_id = %(tenant_id)s AND e.event_id IS NULL
"""
_RULES = {
    "counters are the sums, seqs have no gaps": _COUNTERS,
    "every version of an event has its observation": _HISTORIES,
    "events of a branch come after its fork": _BRANCHES,
    "every observation is of an event": _STRAYS,
}


def assert_invariants(admin_url: str, tenant_id: str) -> None:
    """Fail with the rows of a tenant that break a rule. Needs a superuser's URL."""
    for rule, statement in _RULES.items():
        broken: list[dict[str, Any]] = run(admin_url, statement, {"tenant_id": tenant_id})
        assert not broken, f"{rule}: {len(broken)} rows break it, the first {broken[0]}"
