"""Which words are in which object, and moving them in and out of the rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Json

from annals_storage.domain.cold_storage import WORD_FIELDS, ColdWords, Segment, StoredWords
from annals_storage.postgres.database import Database, Transaction, sql

# A lock of its own: what is written meanwhile does not wait for objects.
_HOLD = """
SELECT pg_advisory_xact_lock(
  hashtextextended('cold ' || %(tenant_id)s::text || %(conversation_id)s::text, 0))
"""
_OF_CONVERSATION = """
SELECT segment_id, conversation_id, first_seq, last_seq, event_count, path, sha256, stored_bytes
FROM annals.cold_segments
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
ORDER BY first_seq, segment_id
"""
_OF_EVENTS = """
SELECT segment_id, conversation_id, first_seq, last_seq, event_count, path, sha256, stored_bytes
FROM annals.cold_segments
WHERE tenant_id = %(tenant_id)s AND segment_id IN (
  SELECT cold_segment_id FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(event_ids)s))
ORDER BY first_seq, segment_id
"""
_BY_ID = """
SELECT segment_id, conversation_id, first_seq, last_seq, event_count, path, sha256, stored_bytes
FROM annals.cold_segments
WHERE tenant_id = %(tenant_id)s AND segment_id = ANY(%(segment_ids)s)
"""
_EXISTS = """
SELECT EXISTS (
  SELECT FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
) AS found
"""
_WORDS_NOW = """
SELECT event_id, cold_segment_id, content, tool_input, tool_result, error_message,
       metadata::text AS metadata
FROM annals.events
WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(event_ids)s) AND erased_at IS NULL
"""


class PostgresColdSession:
    """One transaction that holds a conversation's cold storage for itself."""

    def __init__(self, tx: Transaction, tenant_id: UUID, conversation_id: UUID) -> None:
        self._tx = tx
        self._params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        self._lock = {"tenant_id": tenant_id, "conversation_ids": [conversation_id]}

    async def next_words(
        self, *, until_seq: int | None, max_events: int, max_bytes: int
    ) -> list[StoredWords]:
        """Return the oldest events whose words are still in PostgreSQL, at least one if any."""
        limits = {"until_seq": until_seq, "max_events": max_events, "max_bytes": max_bytes}
        rows = await self._tx.run(sql("cold_next_words"), {**self._params, **limits})
        return [StoredWords(_words(row), row["seq"], row["version"]) for row in rows]

    async def store(self, segment: Segment, words: Sequence[StoredWords]) -> bool:
        """Take the words out of PostgreSQL; False: an event changed since it was read."""
        await self._tx.run(sql("append_lock"), self._lock)
        params = {
            **self._params,
            **asdict(segment),
            "event_ids": [item.words.event_id for item in words],
            "versions": [item.version for item in words],
        }
        [row] = await self._tx.run(sql("cold_store"), params)
        return bool(row["moved"] == len(words))

    async def segments(self) -> list[Segment]:
        """Return the conversation's segments, oldest first."""
        return [Segment(**row) for row in await self._tx.run(_OF_CONVERSATION, self._params)]

    async def segments_of(self, event_ids: Sequence[UUID]) -> list[Segment]:
        """Return the segments that hold these events."""
        params = {**self._params, "event_ids": list(event_ids)}
        return [Segment(**row) for row in await self._tx.run(_OF_EVENTS, params)]

    async def put_back(self, segment: Segment, words: Sequence[ColdWords]) -> int:
        """Put the words back, forget the segment; return how many events got theirs."""
        await self._tx.run(sql("append_lock"), self._lock)
        params = {**self._params, **asdict(segment), "words": Json([_json(w) for w in words])}
        [row] = await self._tx.run(sql("cold_put_back"), params)
        return int(row["restored"])


class PostgresColdSegments:
    """The register of cold storage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def session(
        self, tenant_id: UUID, conversation_id: UUID
    ) -> AsyncIterator[PostgresColdSession]:
        """Open a session; it commits at the end of the block and rolls back on an exception."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(_HOLD, params)
            yield PostgresColdSession(tx, tenant_id, conversation_id)

    async def get(self, tenant_id: UUID, segment_ids: Collection[UUID]) -> dict[UUID, Segment]:
        """Return segments by id."""
        params = {"tenant_id": tenant_id, "segment_ids": list(segment_ids)}
        [rows] = await self._database.run(tenant_id, (_BY_ID, params))
        return {row["segment_id"]: Segment(**row) for row in rows}

    async def exists(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether the conversation exists, deleted or not."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        [[row]] = await self._database.run(tenant_id, (_EXISTS, params))
        return bool(row["found"])

    async def words_now(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, ColdWords | UUID]:
        """Return, of events as they are now, their words, or the segment that holds them."""
        params = {"tenant_id": tenant_id, "event_ids": list(event_ids)}
        [rows] = await self._database.run(tenant_id, (_WORDS_NOW, params))
        return {row["event_id"]: row["cold_segment_id"] or _words(row) for row in rows}


def _words(row: DictRow) -> ColdWords:
    return ColdWords(row["event_id"], **{name: row[name] for name in WORD_FIELDS})


def _json(words: ColdWords) -> dict[str, Any]:
    return {
        "event_id": str(words.event_id),
        **{name: getattr(words, name) for name in WORD_FIELDS},
    }
