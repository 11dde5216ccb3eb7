"""The vector engine as a server: Qdrant over gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models

from annals_storage.domain.generations import FIRST
from annals_storage.domain.search import (
    ChunkPoint,
    DenseVector,
    MemoryPoint,
    MemoryScope,
    ScoredChunk,
    ScoredMemory,
    SearchScope,
    Signal,
    VectorQuery,
)
from annals_storage.vectors import payload
from annals_storage.vectors.errors import CollectionMismatchError
from annals_storage.vectors.server_audit import ServerAudit
from annals_storage.vectors.server_errors import ENGINE_ERRORS, translated
from annals_storage.vectors.server_requests import (
    any_of,
    engine_point,
    event_requests,
    in_scope,
    nearest,
    of_tenant,
)

UPSERT_BATCH_POINTS = 512
"""Keeps a request near 1 MiB at 384 dimensions; the server takes at most 32 MiB."""


def connect(
    url: str, *, api_key: str | None = None, timeout_s: int = 5, grpc_port: int = 6334
) -> AsyncQdrantClient:
    """Return a client of the server at `url`. Nothing is sent before the first call."""
    return AsyncQdrantClient(
        url=url,
        api_key=api_key,
        timeout=timeout_s,
        grpc_port=grpc_port,
        prefer_grpc=True,
        check_compatibility=False,  # it would block on the REST port, which need not be open
    )


class ServerVectorIndex:
    """`VectorIndex` over a collection of a Qdrant server.

    With a `generation`, that is `<collection>_v<generation>`; without one, whatever the alias
    `collection` points at when it is opened. The first to be opened gets the alias, which moves
    when another is announced. `client` belongs to the index, which closes it.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        collection: str,
        dimensions: int,
        generation: int | None = None,
        shard_number: int | None = None,
        replication_factor: int | None = None,
    ) -> None:
        self._client = client
        self._alias = collection
        self._collection = f"{collection}_v{generation or FIRST}"
        self._follows_alias = generation is None
        self._dimensions = dimensions
        self._shard_number = shard_number
        self._replication_factor = replication_factor
        self._audit = ServerAudit(client, lambda: self._collection)

    @property
    def audit(self) -> ServerAudit:
        """Its points as they are, for verification."""
        return self._audit

    async def open(self) -> None:
        """Create the collection, or check it. Safe to repeat. Raises CollectionMismatchError."""
        with translated():
            target = await self._alias_target()
            if target and self._follows_alias:
                self._collection = target
            if not await self._client.collection_exists(self._collection):
                await self._create_collection()
            actual = await self._actual_dimensions()
            await self._index_payload()
            # The alias comes last: who finds it finds a finished collection.
            if not target:
                await self.announce()
        if actual != self._dimensions:
            raise CollectionMismatchError(
                self._collection, expected=self._dimensions, actual=actual
            )

    async def announce(self) -> None:
        """Have the alias point at this collection, at once; safe to repeat."""
        with translated():
            target = await self._alias_target()
            if target != self._collection:
                await self._client.update_collection_aliases(self._alias_moves(target))

    async def drop(self) -> None:
        """Delete the collection; safe to repeat."""
        with translated():
            await self._client.delete_collection(self._collection)

    async def close(self) -> None:
        """Close the client; safe to repeat."""
        await self._client.close()

    async def ping(self) -> None:
        """Answer, or raise."""
        with translated():
            await self._client.get_collection(self._collection)

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points; the server has them in its write-ahead log on return."""
        for point in points:
            payload.check_dimensions(point.dense, self._dimensions)
        structs = [engine_point(point) for point in points]
        with translated():
            for start in range(0, len(structs), UPSERT_BATCH_POINTS):
                batch = structs[start : start + UPSERT_BATCH_POINTS]
                await self._client.upsert(self._collection, batch, wait=True)

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""
        if event_ids:
            await self._delete(tenant_id, any_of(payload.EVENT_ID, payload.texts(event_ids)))

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""
        if chunk_ids:
            only_these = models.HasIdCondition(has_id=[*payload.texts(chunk_ids)])
            await self._delete(tenant_id, only_these)

    async def delete_memories(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> None:
        """Remove these memories."""
        await self.delete_chunks(tenant_id, memory_ids)

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk and memory of this conversation."""
        only_it = any_of(payload.CONVERSATION_ID, [str(conversation_id)])
        await self._delete(tenant_id, only_it)

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return the best chunks per signal; all signals travel in one request."""
        if query.dense is not None:
            payload.check_dimensions(query.dense, self._dimensions)
        found: dict[Signal, list[ScoredChunk]] = {signal: [] for signal in payload.asked(query)}
        requests = event_requests(query)
        if not requests:
            return found
        with translated():
            answers = await self._client.query_batch_points(self._collection, [*requests.values()])
        hits = {
            signal: _hits(answer.points) for signal, answer in zip(requests, answers, strict=True)
        }
        return found | hits

    async def query_memories(
        self, scope: MemoryScope, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return the nearest memories of the scope."""
        payload.check_dimensions(dense, self._dimensions)
        with translated():
            answer = await self._client.query_points(
                self._collection,
                query=nearest(dense),
                using=Signal.DENSE,
                query_filter=in_scope(scope),
                limit=limit,
                with_payload=False,
            )
        return [ScoredMemory(UUID(str(point.id)), point.score) for point in answer.points]

    async def count(self, scope: SearchScope | MemoryScope) -> int:
        """Return the exact number of points in the scope."""
        return await self._count(in_scope(scope))

    async def count_points(self, tenant_id: UUID) -> int:
        """Return the exact number of points of a tenant, of every kind and branch."""
        return await self._count(of_tenant(tenant_id))

    async def _count(self, within: models.Filter) -> int:
        with translated():
            result = await self._client.count(self._collection, count_filter=within, exact=True)
        return result.count

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""
        with translated():
            records, _ = await self._client.scroll(
                self._collection,
                scroll_filter=of_tenant(tenant_id),
                limit=limit + 1,
                offset=None if after is None else str(after),
                with_payload=[payload.EVENT_ID],
            )
        pairs = [payload.point_and_source(row.id, row.payload) for row in records]
        return payload.page_after(pairs, after=after, limit=limit)

    def _alias_moves(self, target: str | None) -> list[models.AliasOperations]:
        points_at = models.CreateAlias(collection_name=self._collection, alias_name=self._alias)
        gone = models.DeleteAlias(alias_name=self._alias)
        create = models.CreateAliasOperation(create_alias=points_at)
        return [models.DeleteAliasOperation(delete_alias=gone), create] if target else [create]

    async def _alias_target(self) -> str | None:
        answer = await self._client.get_aliases()
        targets = {entry.alias_name: entry.collection_name for entry in answer.aliases}
        return targets.get(self._alias)

    async def _index_payload(self) -> None:
        """Make the indexes that are missing: a collection may be older than one of them."""
        present = (await self._client.get_collection(self._collection)).payload_schema
        for name, schema in _payload_schema().items():
            if name not in present:
                await self._client.create_payload_index(self._collection, name, schema, wait=True)

    async def _create_collection(self) -> None:
        try:
            await self._client.create_collection(
                self._collection,
                vectors_config={Signal.DENSE: _dense_params(self._dimensions)},
                sparse_vectors_config={
                    Signal.BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)
                },
                # One graph per tenant and none across them.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                shard_number=self._shard_number,
                replication_factor=self._replication_factor,
            )
        except (*ENGINE_ERRORS, ValueError):
            # Another instance that starts now, or one that died half way, may have made it.
            if not await self._client.collection_exists(self._collection):
                raise

    async def _actual_dimensions(self) -> int:
        info = await self._client.get_collection(self._collection)
        vectors = info.config.params.vectors
        return vectors[Signal.DENSE].size if isinstance(vectors, dict) else 0

    async def _delete(self, tenant_id: UUID, condition: models.Condition) -> None:
        these = models.Filter(must=[of_tenant(tenant_id), condition])
        selector = models.FilterSelector(filter=these)
        with translated():
            await self._client.delete(self._collection, selector, wait=True)


def _dense_params(dimensions: int) -> models.VectorParams:
    return models.VectorParams(
        size=dimensions, distance=models.Distance.COSINE, datatype=models.Datatype.FLOAT16
    )


def _payload_schema() -> dict[str, models.KeywordIndexParams | models.PayloadSchemaType]:
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    return {
        payload.TENANT_ID: tenant,
        **dict.fromkeys(payload.KEYWORD_FIELDS, models.PayloadSchemaType.KEYWORD),
        **dict.fromkeys(payload.INTEGER_FIELDS, models.PayloadSchemaType.INTEGER),
    }


def _hits(points: Sequence[models.ScoredPoint]) -> list[ScoredChunk]:
    return [payload.decode(point.id, point.payload or {}, point.score) for point in points]
