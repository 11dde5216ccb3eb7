"""Conversations of many nested branches, written straight into the tables."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import psycopg

_EVENTS = """
INSERT INTO annals.events
  (tenant_id, conversation_id, seq, event_id, type, role, content, token_count, event_time,
   created_at, branch)
SELECT %(tenant)s, %(room)s, n, gen_random_uuid(), 'message', 'user',
       'event ' || n || repeat(' of some words', 8), 5, now(), now(), (n - 1) / %(each)s + 1
FROM generate_series(1, %(total)s) AS n
"""
_BRANCH = """
INSERT INTO annals.branches
  (tenant_id, conversation_id, branch, parent_branch, fork_seq, view_branches, view_after,
   view_until)
VALUES (%(tenant)s, %(room)s, %(branch)s, %(parent)s, %(fork_seq)s, %(branches)s, %(after)s,
        %(until)s)
"""


@dataclass(frozen=True, slots=True)
class NestedBranches:
    """Branch b holds the events (b - 1) * each + 1 … b * each; branch b + 1 departs from it
    after its first `kept`. The newest one is current.
    """

    tenant_id: UUID
    conversation_id: UUID
    branches: int
    each: int
    kept: int

    def parts(self, branch: int) -> list[tuple[int, int, int]]:
        """What a branch shows of its ancestors: (branch, after_seq, until_seq)."""
        return [(one, self.fork_seq(one), self.fork_seq(one + 1)) for one in range(1, branch)]

    def fork_seq(self, branch: int) -> int:
        """Where a branch departs from the one before."""
        return (branch - 2) * self.each + self.kept if branch > 1 else 0

    def write(self, admin_url: str) -> None:
        """Insert everything, as a superuser."""
        own = {"tenant": self.tenant_id, "room": self.conversation_id}
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute("INSERT INTO annals.tenants VALUES (%(tenant)s, 't')", own)
            connection.execute(
                "INSERT INTO annals.conversations (tenant_id, conversation_id, next_seq,"
                " current_branch, branch_count) VALUES (%(tenant)s, %(room)s, %(next)s,"
                " %(branches)s, %(branches)s)",
                {**own, "next": self.branches * self.each + 1, "branches": self.branches},
            )
            total = self.branches * self.each
            connection.execute(_EVENTS, {**own, "each": self.each, "total": total})
            for branch in range(2, self.branches + 1):
                connection.execute(_BRANCH, {**own, **self._row(branch)})
            connection.execute("VACUUM ANALYZE annals.events")

    def _row(self, branch: int) -> dict[str, object]:
        branches, after, until = map(list, zip(*self.parts(branch), strict=True))
        return {
            "branch": branch,
            "parent": branch - 1,
            "fork_seq": self.fork_seq(branch),
            "branches": branches,
            "after": after,
            "until": until,
        }
