"""Finds chunks and memories by the words they are kept with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from annals_storage.domain.embedding_bytes import from_bytes
from annals_storage.domain.search import DenseVector, MemoryScope, ScoredChunk, SearchScope
from annals_storage.postgres.database import Database, sql

MAX_ROWS = 5_000
"""Rows that are weighed in one search, however frequent its words."""


class PostgresLexical:
    """`LexicalStore` over PostgreSQL."""

    def __init__(self, database: Database, *, max_rows: int = MAX_ROWS) -> None:
        self._database, self._max_rows = database, max_rows

    async def find_chunks(
        self, scope: SearchScope, terms: Sequence[int], limit: int, embedding_model: str
    ) -> list[ScoredChunk]:
        """Return this model's chunks of the scope that have any of the terms, best first."""
        params = {
            **_event_scope(scope),
            **self._bounds(terms, limit),
            "embedding_model": embedding_model,
        }
        [rows] = await self._database.run(scope.tenant_id, (sql("lexical_events"), params))
        return [ScoredChunk(**row) for row in rows]

    async def find_memories(
        self, scope: MemoryScope, terms: Sequence[int], limit: int, embedding_model: str
    ) -> dict[UUID, DenseVector]:
        """Return memories of the scope that have any of the terms, with their embeddings."""
        params = {
            "tenant_id": scope.tenant_id,
            "conversation_ids": list(scope.conversation_ids) or None,
            "agent_id": scope.agent_id,
            "user_id": scope.user_id,
            "session_id": scope.session_id,
            "tags": list(scope.tags),
            "embedding_model": embedding_model,
            **self._bounds(terms, limit),
        }
        [rows] = await self._database.run(scope.tenant_id, (sql("lexical_memories"), params))
        return {row["memory_id"]: from_bytes(row["embedding"]) for row in rows}

    def _bounds(self, terms: Sequence[int], limit: int) -> dict[str, Any]:
        return {"terms": list(terms), "limit": limit, "max_rows": self._max_rows}


def _event_scope(scope: SearchScope) -> dict[str, Any]:
    return {
        "tenant_id": scope.tenant_id,
        "conversation_ids": list(scope.conversation_ids) or None,
        "agent_ids": list(scope.agent_ids) or None,
        "user_id": scope.user_id,
        "session_id": scope.session_id,
        "types": [kind.value for kind in scope.types] or None,
        "roles": [role.value for role in scope.roles] or None,
        "tool_names": list(scope.tool_names) or None,
        "start_time": scope.start_time,
        "end_time": scope.end_time,
        "event_ids": list(scope.event_ids) or None,
        "exclude_event_ids": list(scope.exclude_event_ids) or None,
        "branch": scope.branch,
        "all_branches": scope.all_branches,
    }
