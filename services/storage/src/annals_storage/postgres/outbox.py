"""The outbox: which rows the mirror still lacks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.errors import DeadlockDetected

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.indexing import (
    Backlog,
    ChunkRow,
    IndexableEvent,
    IndexableMemory,
    KnownChunks,
    MemoryEmbedding,
    MemoryTerms,
    OutboxEntry,
    OutboxKind,
    OutboxTotals,
    Priority,
    StoredEmbedding,
)
from annals_storage.postgres.database import Database, Params, Rows, Statement, sql
from annals_storage.postgres.jobs import enqueued
from annals_storage.postgres.rows import array_text, indexable_from

MAX_ATTEMPTS = 10

_CLAIM = "SELECT * FROM annals.lease_outbox(%(owner)s, %(limit)s, %(lease)s)"
_RELEASE = "SELECT annals.release_outbox(%(owner)s) AS released"
_TOTALS = "SELECT * FROM annals.outbox_lanes()"
_CONVERSATION_IS_DELETED = """
SELECT deleted_at IS NOT NULL AS deleted FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
"""


class PostgresOutbox:
    """Claims, acknowledgements and the chunks that go with them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, owner: str, *, limit: int, lease: timedelta) -> list[OutboxEntry]:
        """Lease at most `limit` entries of any tenants; see 0006_pre_outbox.sql for whose."""
        params = {"owner": owner, "limit": limit, "lease": lease}
        [rows] = await self._database.run_untenanted((_CLAIM, params))
        return [OutboxEntry(**{**row, "kind": OutboxKind(row["kind"])}) for row in rows]

    async def renew(self, owner: str, entries: Sequence[OutboxEntry], *, lease: timedelta) -> None:
        """Prolong leases this owner still has. `entries` are of one tenant."""
        params = {"owner": owner, "lease": lease, **_columns(entries)}
        await self._database.run(entries[0].tenant_id, (sql("renew_leases"), params))

    async def release(self, owner: str) -> int:
        """Give back every lease of this owner; return how many."""
        [[row]] = await self._database.run_untenanted((_RELEASE, {"owner": owner}))
        return int(row["released"])

    async def totals(self) -> list[OutboxTotals]:
        """Return the backlog of every lane over all tenants."""
        [rows] = await self._database.run_untenanted((_TOTALS, {}))
        return [OutboxTotals(**{**row, "priority": Priority(row["priority"])}) for row in rows]

    async def backlog(
        self,
        tenant_id: UUID,
        *,
        conversation_ids: Sequence[UUID] = (),
        kinds: Sequence[OutboxKind] = (),
        enqueued_until: datetime | None = None,
    ) -> Backlog:
        """Return the backlog of a tenant, or of some conversations or kinds, up to a moment."""
        params = {
            "tenant_id": tenant_id,
            "kinds": [kind.value for kind in kinds] or None,
            "conversation_ids": list(conversation_ids) or None,
            "enqueued_until": enqueued_until,
        }
        [[row]] = await self._database.run(tenant_id, (sql("backlog"), params))
        return Backlog(**row)

    async def count_chunks(self, tenant_id: UUID, embedding_model: str | None = None) -> int:
        """Return how many chunks and memories belong into the mirror, of a model or of all."""
        params = {"tenant_id": tenant_id, "embedding_model": embedding_model}
        [[row]] = await self._database.run(tenant_id, (sql("count_mirrored"), params))
        return int(row["chunks"])

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through what belongs into the mirror, ordered by the first of each pair.

        Pairs are (chunk_id, event_id) for chunks and twice the id for memories.
        """
        params = {
            "tenant_id": tenant_id, "after": after, "limit": limit, "embedding_model": None
        }  # fmt: skip
        [rows] = await self._database.run(tenant_id, (sql("list_mirrored"), params))
        return [(row["point_id"], row["source_id"]) for row in rows]

    async def text_bytes(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, int]:
        """Return how many bytes of text there are to read of each event; unknown ones miss."""
        params = {"tenant_id": tenant_id, "event_ids": list(event_ids)}
        [rows] = await self._database.run(tenant_id, (sql("text_bytes"), params))
        return {row["event_id"]: row["bytes"] for row in rows}

    async def get_indexable(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, IndexableEvent]:
        """Return the events as they are now, by id; unknown ones are missing."""
        params = {"tenant_id": tenant_id, "event_ids": list(event_ids)}
        [rows] = await self._database.run(tenant_id, (sql("get_indexable"), params))
        return {row["event_id"]: indexable_from(row) for row in rows}

    async def get_known_chunks(
        self,
        tenant_id: UUID,
        *,
        event_ids: Sequence[UUID],
        content_hashes: Sequence[bytes],
        embedding_model: str,
        other_models: Sequence[str] = (),
    ) -> KnownChunks:
        """Return the chunks these events have, and embeddings of texts that have one.

        Chunks by `other_models` are left out.
        """
        params = {
            "tenant_id": tenant_id,
            "event_ids": list(event_ids),
            "content_hashes": list(content_hashes),
            "embedding_model": embedding_model,
            "other_models": list(other_models),
        }
        embeddings, chunks = await self._database.run(
            tenant_id, (sql("get_known_embeddings"), params), (sql("get_chunk_ids"), params)
        )
        return KnownChunks(
            embeddings={
                row["content_hash"]: StoredEmbedding(row["embedding"], row["token_signs"])
                for row in embeddings
            },
            chunk_ids=frozenset(row["chunk_id"] for row in chunks),
        )

    async def get_indexable_memories(
        self, tenant_id: UUID, memory_ids: Sequence[UUID], embedding_model: str
    ) -> dict[UUID, IndexableMemory]:
        """Return the memories as they are now, by id; deleted ones are missing."""
        params = {
            "tenant_id": tenant_id,
            "memory_ids": list(memory_ids),
            "embedding_model": embedding_model,
        }
        [rows] = await self._database.run(tenant_id, (sql("get_indexable_memories"), params))
        return {
            row["memory_id"]: IndexableMemory(**{**row, "tags": tuple(row["tags"])}) for row in rows
        }

    async def save_memory_embeddings(
        self,
        tenant_id: UUID,
        embeddings: Sequence[MemoryEmbedding],
        embedding_model: str,
        *,
        is_serving: bool = True,
    ) -> None:
        """Keep these embeddings, save those of memories that have changed since.

        By a model that does not serve, they are kept beside the others.
        """
        columns = {
            name: [getattr(item, name) for item in embeddings] for name in MemoryEmbedding.__slots__
        }
        params = {
            "tenant_id": tenant_id,
            "embedding_model": embedding_model,
            "is_serving": is_serving,
            **columns,
        }
        await self._database.run(tenant_id, (sql("save_memory_embeddings"), params))

    async def save_memory_terms(self, tenant_id: UUID, terms: Sequence[MemoryTerms]) -> None:
        """Keep the words of these memories, save those of memories that have changed since."""
        params = {
            "tenant_id": tenant_id,
            **{name: [getattr(item, name) for item in terms] for name in MemoryTerms.__slots__},
            "terms": [array_text(item.terms) for item in terms],
        }
        await self._database.run(tenant_id, (sql("save_memory_terms"), params))

    async def is_conversation_deleted(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether it is deleted or does not exist."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        [rows] = await self._database.run(tenant_id, (_CONVERSATION_IS_DELETED, params))
        return bool(rows[0]["deleted"]) if rows else True

    async def enqueue_conversation_events(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Have every event and memory of a conversation mirrored again."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        await self._database.run(tenant_id, (sql("enqueue_conversation_events"), params))

    async def enqueue_tenant(self, tenant_id: UUID) -> int:
        """Have every conversation of a tenant mirrored again; return how many."""
        params = {"tenant_id": tenant_id}
        [rows] = await self._database.run(tenant_id, (sql("enqueue_tenant"), params))
        return len(rows)

    async def save_chunks(
        self,
        tenant_id: UUID,
        event_ids: Sequence[UUID],
        chunks: Sequence[ChunkRow],
        *,
        other_models: Sequence[str] = (),
    ) -> None:
        """Make these the only chunks of these events, but for those by `other_models`.

        Those of erased events are not stored.
        """
        params = {
            "tenant_id": tenant_id,
            "event_ids": list(event_ids),
            "other_models": list(other_models),
            **{name: [getattr(c, name) for c in chunks] for name in ChunkRow.__slots__},
            "terms": [array_text(chunk.terms) for chunk in chunks],
        }
        lock = {
            "tenant_id": tenant_id,
            "conversation_ids": sorted({chunk.conversation_id for chunk in chunks}),
        }
        await self._database.run(
            tenant_id, (sql("chunk_lock"), lock), (sql("replace_chunks"), params)
        )

    async def acknowledge(self, owner: str, entries: Sequence[OutboxEntry]) -> None:
        """Remove what is done. `entries` are of one tenant. Their conversations' jobs become due.

        Entries that changed meanwhile stay; entries whose lease was lost are mirrored again.
        """
        tenant_id = entries[0].tenant_id
        params = {"owner": owner, **_columns(entries)}
        conversations = {e.conversation_id for e in entries if e.kind is not OutboxKind.MEMORY}
        # Jobs first, as an erasure has it: their locks are taken in one order.
        _, rows = await self._settle(
            tenant_id, enqueued(tenant_id, conversations), (sql("acknowledge"), params)
        )
        done = {row["key"] for row in rows}
        if lost := [entry for entry in entries if entry.key not in done]:
            again = {"owner": owner, **_columns(lost)}
            await self._settle(tenant_id, (sql("reenqueue"), again))

    async def hold(self, owner: str, entries: Sequence[OutboxEntry], lease: timedelta) -> None:
        """Lease entries of one tenant for longer, save those that changed meanwhile."""
        params = {"owner": owner, "lease": lease, **_columns(entries)}
        await self._settle(entries[0].tenant_id, (sql("hold"), params))

    async def fail(self, owner: str, entries: Sequence[OutboxEntry], error: str) -> None:
        """Pause entries of one tenant after a failure; park those that failed too often."""
        await self._settle(
            entries[0].tenant_id, *[_failure(owner, entry, error) for entry in entries]
        )

    async def _settle(self, tenant_id: UUID, *statements: Statement) -> list[Rows]:
        """Run what an indexer does to keys that others write as well, in an order of their own.

        Raises DependencyUnavailableError after a deadlock: the indexer begins again.
        """
        try:
            return await self._database.run(tenant_id, *statements)
        except DeadlockDetected as error:
            raise DependencyUnavailableError("postgresql") from error


def _columns(entries: Sequence[OutboxEntry]) -> dict[str, Any]:
    return {
        "tenant_id": entries[0].tenant_id,
        "kinds": [entry.kind.value for entry in entries],
        "keys": [entry.key for entry in entries],
        "generations": [entry.generation for entry in entries],
        "conversation_ids": [entry.conversation_id for entry in entries],
    }


def _failure(owner: str, entry: OutboxEntry, error: str) -> Statement:
    params: Params = {
        "tenant_id": entry.tenant_id,
        "kind": entry.kind.value,
        "key": entry.key,
        "generation": entry.generation,
        "owner": owner,
        "error": error,
        "max_attempts": MAX_ATTEMPTS,
    }
    return sql("fail_outbox"), params
