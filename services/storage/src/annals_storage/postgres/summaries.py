"""Reads and writes summaries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from annals_common.errors import ResourceNotFoundError, SummarySourceChangedError
from annals_storage.domain.summaries import (
    MAX_RUNS,
    Citation,
    NewSummary,
    NewSummaryRun,
    Summary,
    SummaryLevel,
    SummaryQuery,
    SummaryRun,
    SummaryRunStatus,
    SummarySource,
    owning_branch,
)
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, Params, Transaction, sql
from annals_storage.postgres.views import view_of

_CURRENT_BRANCH = """
SELECT current_branch FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
"""
# Contexts were made with it: see get_cached_context.sql.
_COUNT_DELETION = """
UPDATE annals.conversations AS c SET version = c.version + 1, updated_at = now()
FROM annals.summaries AS s
WHERE s.tenant_id = %(tenant_id)s AND s.summary_id = %(summary_id)s
  AND c.tenant_id = %(tenant_id)s AND c.conversation_id = s.conversation_id
  AND c.deleted_at IS NULL
"""
_DELETE = """
DELETE FROM annals.summaries AS s
USING annals.conversations AS c
WHERE s.tenant_id = %(tenant_id)s AND s.summary_id = %(summary_id)s
  AND c.tenant_id = %(tenant_id)s AND c.conversation_id = s.conversation_id
  AND c.deleted_at IS NULL
RETURNING s.summary_id
"""


class PostgresSummaries:
    """Summaries of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def source(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        branch: int | None,
        ranges: Sequence[tuple[int, int]],
    ) -> SummarySource:
        """Return what there is to summarise."""
        async with self._database.snapshot(tenant_id) as transaction:
            look = await _Look.begin(transaction, tenant_id, conversation_id, branch)
            await view_of(transaction, look.ids, look.branch)
            [head] = await look.run("get_summary_head")
            versions = await look.source_versions(ranges)
        return SummarySource(look.branch, head["head_seq"] or 0, tuple(versions))

    async def put(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        branch: int | None,
        summaries: Sequence[NewSummary],
        run: NewSummaryRun | None,
    ) -> tuple[list[Summary], SummaryRun | None]:
        """Store all of them and the run, or nothing."""
        async with self._database.transaction(tenant_id) as transaction:
            # Edits and erasures take the same lock: what is looked at stays until it is stored.
            query = sql("lock_conversation")
            look = await _Look.begin(transaction, tenant_id, conversation_id, branch, query=query)
            stored = await look.put(summaries) if summaries else []
            recorded = await look.record(run) if run else None
        return stored, recorded

    async def get(self, tenant_id: UUID, summary_id: UUID) -> Summary | None:
        """Return the visible one."""
        params = {"tenant_id": tenant_id, "summary_id": summary_id}
        [rows] = await self._database.run(tenant_id, (sql("get_summary"), params))
        return _summary_from(rows[0]) if rows else None

    async def page(self, tenant_id: UUID, query: SummaryQuery) -> list[Summary]:
        """Return one page, by first event."""
        cursor_seq, cursor_id = query.cursor or (None, None)
        params = {
            "levels": [level.value for level in query.levels] or None,
            "heights": list(query.heights) or None,
            "first_seq": query.first_seq,
            "last_seq": query.last_seq,
            "provider": query.provider or None,
            "with_text": query.with_text,
            "limit": query.limit,
            "cursor_seq": cursor_seq,
            "cursor_id": cursor_id,
        }
        async with self._database.transaction(tenant_id) as transaction:
            look = await _Look.begin(transaction, tenant_id, query.conversation_id, query.branch)
            await view_of(transaction, look.ids, look.branch)
            rows = await look.run("list_summaries", **params)
        return [_summary_from(row) for row in rows]

    async def delete(self, tenant_id: UUID, summary_id: UUID) -> bool:
        """Delete it for good."""
        params = {"tenant_id": tenant_id, "summary_id": summary_id}
        _, rows = await self._database.run(tenant_id, (_COUNT_DELETION, params), (_DELETE, params))
        return bool(rows)

    async def runs(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> list[SummaryRun]:
        """Return one page of the runs, newest first."""
        cursor_time, cursor_id = cursor or (None, None)
        async with self._database.transaction(tenant_id) as transaction:
            look = await _Look.begin(transaction, tenant_id, conversation_id, None)
            rows = await look.run(
                "list_summary_runs", cursor_time=cursor_time, cursor_id=cursor_id, limit=limit
            )
        return [_run_from(row) for row in rows]


class _Look:
    """A look at one branch of one conversation."""

    def __init__(self, transaction: Transaction, ids: Params, branch: int) -> None:
        self._transaction, self.ids, self.branch = transaction, ids, branch

    @classmethod
    async def begin(
        cls,
        transaction: Transaction,
        tenant_id: UUID,
        conversation_id: UUID,
        branch: int | None,
        *,
        query: str = _CURRENT_BRANCH,
    ) -> _Look:
        """Raises ResourceNotFoundError without the conversation."""
        ids = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        found = await transaction.run(query, ids)
        if not found:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        return cls(transaction, ids, branch or found[0]["current_branch"])

    async def run(self, name: str, **params: Any) -> list[DictRow]:
        return await self._transaction.run(sql(name), {**self.ids, "branch": self.branch, **params})

    async def source_versions(self, ranges: Sequence[tuple[int, int]]) -> list[str]:
        """Return what changes with every event of a range."""
        if not ranges:
            return []
        first_seqs, last_seqs = zip(*ranges, strict=True)
        rows = await self.run(
            "get_summary_sources", first_seqs=list(first_seqs), last_seqs=list(last_seqs)
        )
        return [row["source_version"] for row in rows]

    async def put(self, summaries: Sequence[NewSummary]) -> list[Summary]:
        """Store them. Raises ResourceNotFoundError, SummarySourceChangedError."""
        view = await view_of(self._transaction, self.ids, self.branch)
        await self._check_sources(summaries)
        await self._check_citations(summaries)
        rows = [_row(new, owning_branch(view, new.last_seq)) for new in summaries]
        stored = await self.run("put_summaries", rows=json.dumps(rows, default=str))
        by_place = {
            (row["provider"], row["height"], row["level"], row["first_seq"]): row for row in stored
        }
        return [_summary_from(by_place[new.place]) for new in summaries]

    async def _check_sources(self, summaries: Sequence[NewSummary]) -> None:
        ranges = list(dict.fromkeys((new.first_seq, new.last_seq) for new in summaries))
        versions = await self.source_versions(ranges)
        now = dict(zip(ranges, versions, strict=True))
        for new in summaries:
            if new.source_version != now[new.first_seq, new.last_seq]:
                raise SummarySourceChangedError(new.first_seq, new.last_seq)

    async def _check_citations(self, summaries: Sequence[NewSummary]) -> None:
        cited = {(item.event_id, item.seq) for new in summaries for item in new.citations}
        rows = await self.run(
            "get_uncitable_events",
            event_ids=[event_id for event_id, _ in cited],
            seqs=[seq for _, seq in cited],
        )
        if rows:
            raise ResourceNotFoundError("event", str(rows[0]["event_id"]))

    async def record(self, run: NewSummaryRun) -> SummaryRun:
        """Record a run, and forget the oldest ones."""
        [row] = await self.run("put_summary_run", **asdict(run), max_runs=MAX_RUNS)
        return _run_from(row)


def _row(new: NewSummary, branch: int) -> dict[str, Any]:
    return {**asdict(new), "branch": branch}


def _summary_from(row: DictRow) -> Summary:
    citations = row.get("citations") or ()
    values = {
        **row,
        "level": SummaryLevel(row["level"]),
        "citations": tuple(
            Citation(**{**item, "event_id": UUID(item["event_id"])}) for item in citations
        ),
    }
    return Summary(**values)


def _run_from(row: DictRow) -> SummaryRun:
    return SummaryRun(**{**row, "status": SummaryRunStatus(row["status"])})
