"""What is asked of a Qdrant server: points, filters and queries in its client's terms."""

from __future__ import annotations

from uuid import UUID

from qdrant_client import models

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


def of_tenant(tenant_id: UUID) -> models.Filter:
    """Return the filter of everything of a tenant."""
    return models.Filter(must=[any_of(payload.TENANT_ID, [str(tenant_id)])])


def in_scope(scope: SearchScope | MemoryScope) -> models.Filter:
    """Return the filter of a scope."""
    must: list[models.Condition] = [any_of(name, values) for name, values in payload.matches(scope)]
    if isinstance(scope, MemoryScope):
        return models.Filter(must=must)
    if bounds := payload.time_bounds_us(scope):
        within = models.Range(gte=bounds.get("gte"), lt=bounds.get("lt"))
        must.append(models.FieldCondition(key=payload.EVENT_TIME_US, range=within))
    if scope.view:
        must.append(models.Filter(should=[_in_part(part) for part in scope.view]))
    must_not: list[models.Condition] = [
        any_of(name, values) for name, values in payload.excluded(scope)
    ]
    return models.Filter(must=must, must_not=must_not)


def _in_part(part: BranchPart) -> models.Filter:
    seqs = models.Range(gt=part.after_seq, lte=part.until_seq)
    within = models.FieldCondition(key=payload.SEQ, range=seqs)
    if part.branch == TRUNK:
        others = models.Range(gt=TRUNK)
        elsewhere = models.FieldCondition(key=payload.BRANCH, range=others)
        return models.Filter(must=[within], must_not=[elsewhere])
    return models.Filter(must=[within, any_of(payload.BRANCH, [part.branch])])


def any_of(name: str, values: list[str] | list[int]) -> models.FieldCondition:
    """Return the condition that a field holds one of these values."""
    return models.FieldCondition(key=name, match=models.MatchAny(any=values))


def engine_point(point: ChunkPoint | MemoryPoint) -> models.PointStruct:
    """Return a point as the engine takes it."""
    if isinstance(point, MemoryPoint):
        point_id, vectors = point.memory_id, {Signal.DENSE: point.dense.tolist()}
    else:
        point_id = point.chunk_id
        vectors = {Signal.DENSE: point.dense.tolist(), Signal.BM25: _sparse(point.bm25)}
    return models.PointStruct(id=str(point_id), vector=vectors, payload=payload.encode(point))


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=[*vector.indices], values=[*vector.values])


def event_requests(query: VectorQuery) -> dict[Signal, models.QueryRequest]:
    """Return the request of each signal that can find something."""
    scope = in_scope(query.scope)
    return {
        signal: models.QueryRequest(
            query=nearest(vector),
            using=signal,
            filter=scope,
            params=_params(signal, query.scope),
            limit=query.limit,
            with_payload=[*payload.HIT_FIELDS],
        )
        for signal, vector in payload.asked(query).items()
        if vector is not None
    }


def nearest(vector: DenseVector | SparseVector) -> list[float] | models.SparseVector:
    """Return a vector as a query."""
    if isinstance(vector, SparseVector):
        return _sparse(vector)
    floats: list[float] = vector.tolist()
    return floats


def _params(signal: Signal, scope: SearchScope) -> models.SearchParams | None:
    if signal is Signal.DENSE:
        return None
    # Rarity of a term is counted within the tenant: what others store must not show in scores.
    corpus = of_tenant(scope.tenant_id)
    return models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus))
