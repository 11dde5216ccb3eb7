"""What is asked of Qdrant Edge: points, filters and queries in its own terms."""

from __future__ import annotations

from uuid import UUID

from qdrant_edge import (
    FieldCondition,
    Filter,
    IdfParams,
    MatchAny,
    MatchValue,
    Point,
    Query,
    QueryRequest,
    RangeFloat,
    SearchParams,
)
from qdrant_edge import SparseVector as EdgeSparseVector

from annals_storage.domain.events import TRUNK
from annals_storage.domain.search import (
    BranchPart,
    ChunkPoint,
    DenseVector,
    MemoryPoint,
    MemoryScope,
    SearchScope,
    Signal,
    SparseVector,
    VectorQuery,
)
from annals_storage.vectors import payload


def of_tenant(tenant_id: UUID) -> Filter:
    """Return the filter of everything of a tenant."""
    return Filter(must=[any_of(payload.TENANT_ID, [str(tenant_id)])])


def in_scope(scope: SearchScope | MemoryScope) -> Filter:
    """Return the filter of a scope."""
    must: list[FieldCondition | Filter] = [
        any_of(name, values) for name, values in payload.matches(scope)
    ]
    if isinstance(scope, MemoryScope):
        return Filter(must=[*must])
    if bounds := payload.time_bounds_us(scope):
        must.append(FieldCondition(payload.EVENT_TIME_US, range=RangeFloat(**bounds)))
    if scope.view:
        must.append(Filter(should=[_in_part(part) for part in scope.view]))
    must_not = [any_of(name, values) for name, values in payload.excluded(scope)]
    return Filter(must=[*must], must_not=[*must_not])


def _in_part(part: BranchPart) -> Filter:
    seqs = RangeFloat(gt=part.after_seq, lte=part.until_seq)
    within = FieldCondition(payload.SEQ, range=seqs)
    if part.branch == TRUNK:
        elsewhere = FieldCondition(payload.BRANCH, range=RangeFloat(gt=TRUNK))
        return Filter(must=[within], must_not=[elsewhere])
    return Filter(must=[within, any_of(payload.BRANCH, [part.branch])])


def any_of(name: str, values: list[str] | list[int]) -> FieldCondition:
    """Return the condition that a field holds one of these values."""
    # One value is matched a third faster than a list of one, measured over 100,000 points.
    match = MatchValue(values[0]) if len(values) == 1 else MatchAny(values)
    return FieldCondition(name, match=match)


def engine_point(point: ChunkPoint | MemoryPoint) -> Point:
    """Return a point as the engine takes it."""
    vectors: dict[str, list[float] | EdgeSparseVector | list[list[float]]] = {
        Signal.DENSE: point.dense.tolist()
    }
    if isinstance(point, MemoryPoint):
        return Point(point.memory_id, vectors, payload.encode(point))
    vectors[Signal.BM25] = _sparse(point.bm25)
    return Point(point.chunk_id, vectors, payload.encode(point))


def _sparse(vector: SparseVector) -> EdgeSparseVector:
    return EdgeSparseVector(list(vector.indices), list(vector.values))


def event_requests(query: VectorQuery) -> dict[Signal, QueryRequest]:
    """Return the request of each signal that can find something."""
    scope = in_scope(query.scope)
    return {
        signal: QueryRequest(
            limit=query.limit,
            query=_nearest(signal, vector),
            filter=scope,
            params=_params(signal, query.scope),
            with_payload=[*payload.HIT_FIELDS],
        )
        for signal, vector in payload.asked(query).items()
        if vector is not None
    }


def _nearest(signal: Signal, vector: DenseVector | SparseVector) -> Query:
    if isinstance(vector, SparseVector):
        return Query.Nearest(_sparse(vector), using=signal)
    return Query.Nearest(vector.tolist(), using=signal)


def _params(signal: Signal, scope: SearchScope) -> SearchParams:
    if signal is Signal.DENSE:
        return SearchParams(exact=True)
    # Rarity of a term is counted within the tenant: what others store must not show in scores.
    return SearchParams(idf=IdfParams(of_tenant(scope.tenant_id)))


def memory_request(scope: MemoryScope, dense: DenseVector, limit: int) -> QueryRequest:
    """Return the request for the memories nearest to a vector."""
    return QueryRequest(
        limit=limit,
        query=_nearest(Signal.DENSE, dense),
        filter=in_scope(scope),
        params=SearchParams(exact=True),
    )
