"""What a point carries besides its vectors, and which of it is indexed; for both engines.

Times are integer microseconds since 1970 UTC: both engines index integers, and no time
zone or precision is lost on the way. Engines compare ranges as doubles, which is exact
for microseconds up to the year 2255.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.search import (
    ChunkPoint,
    DenseVector,
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

KEYWORD_FIELDS = (
    CONVERSATION_ID,
    EVENT_ID,
    "agent_id",
    "user_id",
    "session_id",
    "event_type",
    "role",
    "tool_name",
)
"""Filter fields matched by value, besides the tenant."""
INTEGER_FIELDS = (EVENT_TIME_US,)
"""Filter fields matched by range."""
HIT_FIELDS = (CONVERSATION_ID, EVENT_ID, SEQ, CHUNK_INDEX)
"""What a hit brings along."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def encode(point: ChunkPoint) -> dict[str, str | int]:
    """Return the payload of a point; what is None is left out."""
    values: dict[str, str | int | None] = {
        TENANT_ID: str(point.tenant_id),
        CONVERSATION_ID: str(point.conversation_id),
        EVENT_ID: str(point.event_id),
        EVENT_TIME_US: microseconds(point.event_time),
        SEQ: point.seq,
        CHUNK_INDEX: point.chunk_index,
        "event_type": str(point.event_type),
        "agent_id": None if point.agent_id is None else str(point.agent_id),
        "user_id": point.user_id,
        "session_id": point.session_id,
        "role": None if point.role is None else str(point.role),
        "tool_name": point.tool_name,
    }
    return {name: value for name, value in values.items() if value is not None}


@lru_cache(4096)
def _conversation_id(value: str) -> UUID:
    return UUID(value)


def decode(chunk_id: object, payload: Mapping[str, Any], score: float) -> ScoredChunk:
    """Return the hit with this id, `HIT_FIELDS` and raw score."""
    return ScoredChunk(
        chunk_id=UUID(str(chunk_id)),
        event_id=UUID(payload[EVENT_ID]),
        conversation_id=_conversation_id(payload[CONVERSATION_ID]),
        seq=int(payload[SEQ]),
        chunk_index=int(payload[CHUNK_INDEX]),
        score=score,
    )


def matches(scope: SearchScope) -> Iterator[tuple[str, list[str]]]:
    """Yield (field, values): each field must hold one of its values. The tenant is first."""
    yield TENANT_ID, [str(scope.tenant_id)]
    wanted: dict[str, Sequence[object]] = {
        CONVERSATION_ID: scope.conversation_ids,
        "agent_id": scope.agent_ids,
        "user_id": _one(scope.user_id),
        "session_id": _one(scope.session_id),
        "event_type": scope.types,
        "role": scope.roles,
        "tool_name": scope.tool_names,
    }
    yield from (
        (name, [str(value) for value in values]) for name, values in wanted.items() if values
    )


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


def chunk_and_event(chunk_id: object, payload: Mapping[str, Any] | None) -> tuple[UUID, UUID]:
    """Return (chunk_id, event_id) of a point that was read with its event id."""
    return UUID(str(chunk_id)), UUID((payload or {})[EVENT_ID])


def page_after(
    ids: Sequence[tuple[UUID, UUID]], *, after: UUID | None, limit: int
) -> list[tuple[UUID, UUID]]:
    """Drop `after` itself from a page that starts at it and cut the page to `limit`."""
    return [pair for pair in ids if pair[0] != after][:limit]


def texts(ids: Sequence[UUID]) -> list[str]:
    """Return ids as payloads hold them."""
    return [str(one) for one in ids]


def unavailable() -> DependencyUnavailableError:
    """Return the error of an engine that does not answer."""
    return DependencyUnavailableError("vector engine")


def _one(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)
