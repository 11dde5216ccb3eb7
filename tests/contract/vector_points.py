"""Points for the contract of the vector index, and what a scope means in plain Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from annals_storage.domain.events import EventType
from annals_storage.domain.search import (
    ChunkPoint,
    MemoryPoint,
    MemoryScope,
    ScoredChunk,
    SearchScope,
    Signal,
    SparseVector,
    VectorQuery,
)

DIMENSIONS = 8
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def unit(*values: float) -> NDArray[np.float32]:
    padded = np.zeros(DIMENSIONS, np.float32)
    padded[: len(values)] = values
    return padded / np.float32(np.linalg.norm(padded))


def random_units(seed: int, rows: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def terms(*indices: int) -> SparseVector:
    return SparseVector(indices, tuple(1.0 for _ in indices))


def chunk(tenant_id: UUID, **fields: Any) -> ChunkPoint:
    defaults: dict[str, Any] = {
        "chunk_id": uuid4(),
        "conversation_id": uuid4(),
        "event_id": uuid4(),
        "seq": 1,
        "chunk_index": 0,
        "event_type": EventType.MESSAGE,
        "event_time": NOON,
        "dense": unit(1.0),
        "bm25": terms(7),
    }
    return ChunkPoint(tenant_id=tenant_id, **defaults | fields)


def memory(tenant_id: UUID, **fields: Any) -> MemoryPoint:
    defaults: dict[str, Any] = {
        "memory_id": uuid4(),
        "conversation_id": uuid4(),
        "dense": unit(1.0),
    }
    return MemoryPoint(tenant_id=tenant_id, **defaults | fields)


def ask(scope: SearchScope, *, limit: int = 100, **vectors: Any) -> VectorQuery:
    return VectorQuery(scope, limit, **vectors or {"dense": unit(1.0), "bm25": terms(7)})


def ids(hits: list[ScoredChunk]) -> list[UUID]:
    return [hit.chunk_id for hit in hits]


async def found(index: Any, scope: SearchScope) -> set[UUID]:
    """Return what both signals and the count agree is in the scope."""
    answer = await index.query(ask(scope))
    dense, bm25 = set(ids(answer[Signal.DENSE])), set(ids(answer[Signal.BM25]))
    assert dense == bm25
    assert await index.count(scope) == len(dense)
    return dense


async def found_memories(index: Any, scope: MemoryScope) -> set[UUID]:
    """Return what the query and the count agree is in the scope."""
    hits = await index.query_memories(scope, unit(1.0), 100)
    assert await index.count(scope) == len(hits)
    return {hit.memory_id for hit in hits}


def in_scope(point: ChunkPoint, scope: SearchScope) -> bool:
    wanted = [
        ({scope.tenant_id}, point.tenant_id),
        (scope.conversation_ids, point.conversation_id),
        (scope.agent_ids, point.agent_id),
        ([] if scope.user_id is None else [scope.user_id], point.user_id),
        ([] if scope.session_id is None else [scope.session_id], point.session_id),
        (scope.types, point.event_type),
        (scope.roles, point.role),
        (scope.tool_names, point.tool_name),
    ]
    return (
        all(value in values for values, value in wanted if values)
        and (scope.start_time is None or scope.start_time <= point.event_time)
        and (scope.end_time is None or point.event_time < scope.end_time)
        and point.event_id not in scope.exclude_event_ids
        and in_view(point, scope)
    )


def in_view(point: ChunkPoint, scope: SearchScope) -> bool:
    if scope.view:
        return any(
            point.branch == part.branch and part.after_seq < point.seq <= part.until_seq
            for part in scope.view
        )
    return scope.all_branches or point.current
