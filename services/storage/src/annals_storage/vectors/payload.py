"""What a point carries besides its vectors, and which of it is indexed; for both engines.

Times are integer microseconds since 1970 UTC: both engines index integers, and no time
zone or precision is lost on the way. Engines compare ranges as doubles, which is exact
for microseconds up to the year 2255.

A point without `kind`, `branch` or `current` is an event, of the trunk, in view: most are, so these
values are left out, and points written before there were branches and memories need not be written
anew. Filters name what is excluded (`current` = 0, `branch` >= 2, `kind` = memory).
Points written before the mirror could be verified lack `made_of`. They count as made of the right
words when all else agrees, and get theirs when they are next written; so these, too, stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from annals_common.errors import EngineUnavailableError
from annals_storage.domain.events import TRUNK
from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.domain.search import (
    ChunkPoint,
    DenseVector,
    MemoryPoint,
    MemoryScope,
    PointKind,
    ScoredChunk,
    SearchScope,
    Signal,
    SparseVector,
    VectorQuery,
)

TENANT_ID = "tenant_id"
CONVERSATION_ID = "conversation_id"
EVENT_ID = "event_id"
EVENT_TIME_US = "event_time_us"
SEQ = "seq"
CHUNK_INDEX = "chunk_index"
KIND = "kind"
BRANCH = "branch"
CURRENT = "current"
TAGS = "tags"
MADE_OF = "made_of"
"""Not indexed: nothing is found by it."""

KEYWORD_FIELDS = (
    CONVERSATION_ID,
    EVENT_ID,
    "agent_id",
    "user_id",
    "session_id",
    "event_type",
    "role",
    "tool_name",
    KIND,
    TAGS,
)
"""Filter fields matched by value, besides the tenant."""
INTEGER_FIELDS = (EVENT_TIME_US, SEQ, BRANCH, CURRENT)
"""Filter fields matched by range or number."""
LEFT_OUT = {KIND: PointKind.EVENT.value, BRANCH: TRUNK, CURRENT: 1}
"""What a point is taken for that does not say otherwise."""
FIELDS = (TENANT_ID, *KEYWORD_FIELDS, *INTEGER_FIELDS, CHUNK_INDEX)
"""What a point is judged by, besides what it was made of. Later versions may add others."""
HIT_FIELDS = (CONVERSATION_ID, EVENT_ID, SEQ, CHUNK_INDEX)
"""What a hit brings along."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def encode(point: ChunkPoint | MemoryPoint) -> dict[str, Any]:
    """Return the payload of a point; what is None or goes without saying is left out."""
    values = _memory_values(point) if isinstance(point, MemoryPoint) else _chunk_values(point)
    values |= {
        TENANT_ID: str(point.tenant_id),
        CONVERSATION_ID: str(point.conversation_id),
        "agent_id": None if point.agent_id is None else str(point.agent_id),
        "user_id": point.user_id,
        "session_id": point.session_id,
        MADE_OF: point.made_of or None,
    }
    return {
        name: value
        for name, value in values.items()
        if value is not None and LEFT_OUT.get(name) != value
    }


def _chunk_values(point: ChunkPoint) -> dict[str, Any]:
    return {
        KIND: PointKind.EVENT.value,
        EVENT_ID: str(point.event_id),
        EVENT_TIME_US: microseconds(point.event_time),
        SEQ: point.seq,
        BRANCH: point.branch,
        CURRENT: int(point.current),
        CHUNK_INDEX: point.chunk_index,
        "event_type": str(point.event_type),
        "role": None if point.role is None else str(point.role),
        "tool_name": point.tool_name,
    }


def _memory_values(point: MemoryPoint) -> dict[str, Any]:
    # No memory is in view on a branch: one condition keeps abandoned events and memories out.
    return {KIND: PointKind.MEMORY.value, CURRENT: 0, TAGS: list(point.tags)}


@lru_cache(4_096)
def _conversation_id(value: str) -> UUID:
    return UUID(value)


@lru_cache(16_384)
def _event_id(value: str) -> UUID:
    # Both signals of a search find many of the same events, and so does the next search.
    return UUID(value)


def point_id_of(value: object) -> UUID:
    """Return the id of a point, of which the engine in process makes UUIDs itself."""
    return value if isinstance(value, UUID) else UUID(str(value))


def decode(chunk_id: object, payload: Mapping[str, Any], score: float) -> ScoredChunk:
    """Return the hit with this id, `HIT_FIELDS` and raw score."""
    return ScoredChunk(
        chunk_id=point_id_of(chunk_id),
        event_id=_event_id(payload[EVENT_ID]),
        conversation_id=_conversation_id(payload[CONVERSATION_ID]),
        seq=int(payload[SEQ]),
        chunk_index=int(payload[CHUNK_INDEX]),
        score=score,
    )


def matches(scope: SearchScope | MemoryScope) -> Iterator[tuple[str, list[str]]]:
    """Yield (field, values): each field must hold one of its values. The tenant is first."""
    yield TENANT_ID, [str(scope.tenant_id)]
    wanted = _memory_matches(scope) if isinstance(scope, MemoryScope) else _event_matches(scope)
    yield from ((name, [str(value) for value in values]) for name, values in wanted if values)


def _event_matches(scope: SearchScope) -> list[tuple[str, Sequence[object]]]:
    return [
        (CONVERSATION_ID, scope.conversation_ids),
        (EVENT_ID, scope.event_ids),
        ("agent_id", scope.agent_ids),
        ("user_id", _one(scope.user_id)),
        ("session_id", _one(scope.session_id)),
        ("event_type", scope.types),
        ("role", scope.roles),
        ("tool_name", scope.tool_names),
    ]


def _memory_matches(scope: MemoryScope) -> list[tuple[str, Sequence[object]]]:
    return [
        (KIND, (PointKind.MEMORY.value,)),
        (CONVERSATION_ID, scope.conversation_ids),
        ("agent_id", _one(scope.agent_id)),
        ("user_id", _one(scope.user_id)),
        ("session_id", _one(scope.session_id)),
        *((TAGS, (tag,)) for tag in scope.tags),
    ]


def excluded(scope: SearchScope) -> Iterator[tuple[str, list[str] | list[int]]]:
    """Yield (field, values): no field may hold one of its values."""
    if scope.exclude_event_ids:
        yield EVENT_ID, texts(scope.exclude_event_ids)
    if scope.all_branches:
        yield KIND, [PointKind.MEMORY.value]
    elif not scope.view:
        yield CURRENT, [0]


def time_bounds_us(scope: SearchScope) -> dict[str, int]:
    """Return the half-open range as `gte` and `lt`; an open side is left out."""
    bounds = {"gte": scope.start_time, "lt": scope.end_time}
    return {name: microseconds(at) for name, at in bounds.items() if at is not None}


def microseconds(moment: datetime) -> int:
    """Return whole microseconds since 1970 UTC. Raises TypeError without a time zone."""
    return (moment - EPOCH) // MICROSECOND


def asked(query: VectorQuery) -> dict[Signal, DenseVector | SparseVector | None]:
    """Return the vector of each signal asked, None where nothing can match it."""
    signals: dict[Signal, DenseVector | SparseVector | None] = {}
    if query.dense is not None:
        signals[Signal.DENSE] = query.dense if query.limit > 0 else None
    if query.bm25 is not None:
        signals[Signal.BM25] = query.bm25 if query.limit > 0 and query.bm25.indices else None
    return signals


def check_dimensions(vector: DenseVector, dimensions: int) -> None:
    """Raise ValueError unless the vector has the length of the collection."""
    if vector.shape != (dimensions,):
        raise ValueError(f"vector has shape {vector.shape}, the collection takes ({dimensions},)")


def point_and_source(point_id: object, payload: Mapping[str, Any] | None) -> tuple[UUID, UUID]:
    """Return (chunk_id, event_id), or twice the id of a memory, of a point read with EVENT_ID."""
    return UUID(str(point_id)), UUID((payload or {}).get(EVENT_ID) or str(point_id))


def stored_point(point_id: object, payload: Mapping[str, Any] | None) -> StoredPoint:
    """Return a point read with its payload, whatever is in there."""
    held = payload or {}
    tenant = held.get(TENANT_ID)
    named = (_id_or_none(held.get(name)) for name in (EVENT_ID, CONVERSATION_ID))
    own_id = UUID(str(point_id))
    keys = (own_id, *(key for key in named if key is not None))
    return StoredPoint(own_id, tenant if isinstance(tenant, str) else None, keys, held)


def drift(stored: StoredPoint, expected: ChunkPoint | MemoryPoint) -> Drift | None:
    """Return how a stored point differs from what would be written now; None: not at all."""
    held = LEFT_OUT | {**stored.payload}
    wanted = LEFT_OUT | encode(expected)
    digest = held.get(MADE_OF)
    if digest is not None and digest != wanted.get(MADE_OF):
        return Drift.STALE
    same = all(held.get(name) == wanted.get(name) for name in FIELDS)
    return None if same else Drift.WRONG_PAYLOAD


def _id_or_none(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def page_after(
    ids: Sequence[tuple[UUID, UUID]], *, after: UUID | None, limit: int
) -> list[tuple[UUID, UUID]]:
    """Drop `after` itself from a page that starts at it and cut the page to `limit`."""
    return [pair for pair in ids if pair[0] != after][:limit]


def texts(ids: Sequence[UUID]) -> list[str]:
    """Return ids as payloads hold them."""
    return [str(one) for one in ids]


def unavailable() -> EngineUnavailableError:
    """Return the error of an engine that does not answer."""
    return EngineUnavailableError()


def _one(value: object) -> tuple[object, ...]:
    return () if value is None else (value,)
