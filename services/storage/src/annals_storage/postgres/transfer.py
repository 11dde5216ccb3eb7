"""Reads and writes conversations whole."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg import errors

from annals_common.errors import ResourceAlreadyExistsError
from annals_storage.domain.events import EventPage
from annals_storage.domain.transfer_fields import LineInvalidError
from annals_storage.domain.transfer_history import Reference
from annals_storage.domain.transfer_lines import Kind
from annals_storage.ports.transfer import ConversationRaceError, Row
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.rows import event_from

PAGE_EVENTS = 200
PAGE_ROWS = 100
PAGE_BYTES = 8 * 1024 * 1024
_MAX_SEQ = 2**63 - 1
_NOBODY = UUID(int=0)
_EVER = {"after_created_at": "-infinity"}
_EXPORTS: dict[Kind, tuple[str, dict[str, Any]]] = {
    Kind.BRANCH: ("export_branches", {"after_branch": 0}),
    Kind.MEMORY: ("export_memories", {**_EVER, "after_memory_id": _NOBODY}),
    Kind.ATTACHMENT: ("export_attachments", {**_EVER, "after_attachment_id": _NOBODY}),
    Kind.RELATIONSHIP: ("export_relationships", {"after_relationship_id": _NOBODY}),
    Kind.REQUEST: ("export_requests", {"after_request_id": _NOBODY}),
    Kind.USAGE: ("export_usage", {"after_day": "-infinity", "after_model": ""}),
}
"""Statement, and where its first page begins; the next ones begin after these columns."""
_IMPORTS = {
    Kind.CONVERSATION: "import_conversation",
    Kind.BRANCH: "import_branches",
    Kind.EVENT: "import_events",
    Kind.OBSERVATION: "import_observations",
    Kind.MEMORY: "import_memories",
    Kind.ATTACHMENT: "import_attachments",
    Kind.RELATIONSHIP: "import_relationships",
    Kind.REQUEST: "import_requests",
    Kind.USAGE: "import_usage",
}
_KNOWN = {
    Kind.EVENT: """
SELECT event_id::text AS id FROM annals.events
WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(ids)s::uuid[]) LIMIT 1
""",
    Kind.MEMORY: """
SELECT memory_id::text AS id FROM annals.memories
WHERE tenant_id = %(tenant_id)s AND memory_id = ANY(%(ids)s::uuid[]) LIMIT 1
""",
    Kind.ATTACHMENT: """
SELECT attachment_id::text AS id FROM annals.attachments
WHERE tenant_id = %(tenant_id)s AND attachment_id = ANY(%(ids)s::uuid[]) LIMIT 1
""",
    Kind.RELATIONSHIP: """
SELECT relationship_id::text AS id FROM annals.relationships
WHERE tenant_id = %(tenant_id)s AND relationship_id = ANY(%(ids)s::uuid[]) LIMIT 1
""",
}
_HAS_AGENT = """
SELECT EXISTS (
  SELECT FROM annals.agents WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
) AS found
"""
_HAS_BRANCH = """
SELECT EXISTS (
  SELECT FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s)
) AS found
"""
_TAKEN = {
    "conversations_host_id": "conversation with this host_id",
    "conversations_request_id": "conversation with this request_id",
    "relationships_once": "relationship",
}


class PostgresTransfer:
    """Conversations of a tenant, whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def snapshot(self, tenant_id: UUID) -> AsyncIterator[_Transfer]:
        """Read as of one moment."""
        async with self._database.snapshot(tenant_id) as transaction:
            yield _Transfer(transaction, tenant_id)

    @asynccontextmanager
    async def importing(self, tenant_id: UUID) -> AsyncIterator[_Transfer]:
        """Commit at the end of the block; an exception leaves nothing."""
        async with self._database.transaction(tenant_id) as transaction:
            yield _Transfer(transaction, tenant_id)


class _Transfer:
    """One transaction. See ports.transfer."""

    def __init__(self, transaction: Transaction, tenant_id: UUID) -> None:
        self._transaction, self._tenant_id = transaction, tenant_id

    async def conversation(self, conversation_id: UUID) -> Row | None:
        rows = await self._run(sql("export_conversation"), conversation_id=conversation_id)
        return rows[0] if rows else None

    async def events(
        self, conversation_id: UUID, *, after_seq: int, branch: int | None
    ) -> EventPage:
        statement = "list_all_branches" if branch is None else "list_events"
        anything = dict.fromkeys(("start_time", "end_time", "types", "roles", "tool_names"))
        rows = await self._run(
            sql(statement),
            **anything,
            conversation_id=conversation_id,
            branch=branch,
            after_seq=after_seq,
            before_seq=_MAX_SEQ,
            show_deleted=branch is None,
            limit=PAGE_EVENTS,
            max_bytes=PAGE_BYTES,
        )
        return EventPage(tuple(map(event_from, rows)), bool(rows and rows[0]["has_more"]))

    async def observations(self, event_ids: Sequence[UUID], *, after: tuple[int, int]) -> list[Row]:
        after_place, after_version = after
        return await self._run(
            sql("export_observations"),
            event_ids=list(event_ids),
            after_place=after_place,
            after_version=after_version,
            limit=PAGE_EVENTS,
            max_bytes=PAGE_BYTES,
        )

    async def rows(self, kind: Kind, conversation_id: UUID, last: Row | None) -> list[Row]:
        statement, begin = _EXPORTS[kind]
        after = begin
        if last is not None:
            after = {name: last[name.removeprefix("after_")] for name in begin}
        return await self._run(
            sql(statement), conversation_id=conversation_id, limit=PAGE_ROWS, **after
        )

    async def has_branch(self, conversation_id: UUID, branch: int) -> bool:
        [row] = await self._run(_HAS_BRANCH, conversation_id=conversation_id, branch=branch)
        return bool(row["found"])

    async def has_agent(self, agent_id: UUID) -> bool:
        [row] = await self._run(_HAS_AGENT, agent_id=agent_id)
        return bool(row["found"])

    async def known(self, kind: Kind, ids: Sequence[str]) -> str | None:
        rows = await self._run(_KNOWN[kind], ids=list(ids)) if kind in _KNOWN else []
        return rows[0]["id"] if rows else None

    async def insert(self, kind: Kind, conversation_id: UUID, rows_json: str) -> None:
        with _refusals(kind, conversation_id):
            await self._run(sql(_IMPORTS[kind]), conversation_id=conversation_id, rows=rows_json)

    async def unfounded(
        self, conversation_id: UUID, references: Sequence[Reference]
    ) -> tuple[int, str] | None:
        given = json.dumps([asdict(reference) for reference in references])
        rows = await self._run(
            sql("import_references"), conversation_id=conversation_id, references=given
        )
        return (rows[0]["line"], rows[0]["field"]) if rows else None

    async def problem(self, conversation_id: UUID) -> tuple[str, str] | None:
        rows = await self._run(sql("import_problem"), conversation_id=conversation_id)
        return (rows[0]["field"], rows[0]["id"]) if rows else None

    async def _run(self, statement: str, **params: Any) -> list[Row]:
        return await self._transaction.run(statement, {"tenant_id": self._tenant_id, **params})


@contextmanager
def _refusals(kind: Kind, conversation_id: UUID) -> Iterator[None]:
    try:
        yield
    except errors.UniqueViolation as error:
        constraint = error.diag.constraint_name or ""
        if constraint == "conversations_pkey":
            raise ConversationRaceError from error
        if constraint in _TAKEN:
            raise ResourceAlreadyExistsError(_TAKEN[constraint], str(conversation_id)) from error
        raise LineInvalidError(f"one of these lines {kind} is there twice: {constraint}") from error
    except (errors.IntegrityError, errors.DataError) as error:
        raise LineInvalidError(
            f"one of these lines {kind} cannot be stored: {error.diag.message_primary}"
        ) from error
