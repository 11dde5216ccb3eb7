"""MemoryService."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from annals.storage.v1 import memory_service_pb2 as pb
from annals.storage.v1 import memory_service_pb2_grpc as pb_grpc
from annals.storage.v1 import resources_pb2 as resources
from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.principal import current_principal
from annals_common.validation import (
    bounded,
    check_response_size,
    optional_uuid,
    page_size,
    require_uuid,
    text,
    uuids,
)
from annals_storage.commands.memories import (
    MemorySearch,
    StoreMemory,
    UpdateMemory,
)
from annals_storage.commands.search_log import SearchLog
from annals_storage.domain.memories import Memory, MemoryHit, MemoryQuery, MemorySearchResult
from annals_storage.domain.search import MemoryScope
from annals_storage.domain.search_log import SearchLogKind
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.memory_input import EmbeddingSpace, memory_change, new_memory, tags
from annals_storage.handlers.output import timestamp_message
from annals_storage.handlers.search import (
    MAX_HITS,
    MAX_SCOPE_IDS,
    expires_at,
    freshness_seconds,
)
from annals_storage.handlers.search_input import MAX_QUERY_CHARS
from annals_storage.ports.memories import MemoryStore

DEFAULT_TOP_K = 5
DEFAULT_THRESHOLD = 0.5


class MemoryHandler(pb_grpc.MemoryServiceServicer):
    """Translates; the use cases are in commands.memories."""

    def __init__(
        self,
        memories: MemoryStore,
        *,
        search: Callable[[MemorySearch], Awaitable[MemorySearchResult]],
        search_log: SearchLog,
        space: Callable[[], EmbeddingSpace],
    ) -> None:
        self._memories, self._search, self._search_log = memories, search, search_log
        self._space = space
        self._store, self._update = StoreMemory(memories), UpdateMemory(memories)

    async def StoreMemory(
        self, request: pb.StoreMemoryRequest, context: Any
    ) -> pb.StoreMemoryResponse:
        tenant_id = data_tenant("StoreMemory")
        new = new_memory(request, tenant_id, self._space())
        memory, replayed = await self._store(tenant_id, new)
        return pb.StoreMemoryResponse(memory=self._message(memory), replayed=replayed)

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Any) -> pb.GetMemoryResponse:
        tenant_id = data_tenant("GetMemory")
        memory_id = require_uuid(request.memory_id, "memory_id")
        found = await self._memories.get(tenant_id, [memory_id])
        if memory_id not in found:
            raise ResourceNotFoundError("memory", str(memory_id))
        return pb.GetMemoryResponse(memory=self._message(found[memory_id].memory))

    async def ListMemories(
        self, request: pb.ListMemoriesRequest, context: Any
    ) -> pb.ListMemoriesResponse:
        tenant_id = data_tenant("ListMemories")
        limit = page_size(request.page_size)
        found = await self._memories.page(tenant_id, _query(request, tenant_id, limit + 1))
        page, has_more = cut_page(found, limit)
        response = pb.ListMemoriesResponse(memories=[self._message(memory) for memory in page])
        check_response_size(response, "page_size")
        if has_more:
            cursor = encode_time_cursor(page[-1].created_at, page[-1].memory_id)
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def UpdateMemory(
        self, request: pb.UpdateMemoryRequest, context: Any
    ) -> pb.UpdateMemoryResponse:
        tenant_id = data_tenant("UpdateMemory")
        memory = await self._update(tenant_id, memory_change(request, self._space()))
        return pb.UpdateMemoryResponse(memory=self._message(memory))

    async def DeleteMemory(
        self, request: pb.DeleteMemoryRequest, context: Any
    ) -> pb.DeleteMemoryResponse:
        tenant_id = data_tenant("DeleteMemory")
        memory_id = require_uuid(request.memory_id, "memory_id")
        if not await self._memories.delete(tenant_id, memory_id):
            raise ResourceNotFoundError("memory", str(memory_id))
        return pb.DeleteMemoryResponse()

    async def SearchMemories(
        self, request: pb.SearchMemoriesRequest, context: Any
    ) -> pb.SearchMemoriesResponse:
        tenant_id = data_tenant("SearchMemories")
        search = _search(request, tenant_id, self._space(), context.time_remaining())
        result = await self._search(search)
        response = pb.SearchMemoriesResponse(
            hits=[self._hit_message(hit) for hit in result.hits],
            unindexed_count=result.backlog.pending + result.backlog.parked,
            degraded=result.degraded,
            search_time_ms=result.search_time_ms,
        )
        check_response_size(response, "top_k")
        self._search_log.record(
            tenant_id,
            current_principal().actor,
            kind=SearchLogKind.MEMORIES,
            query=search.query,
            conversation_ids=search.scope.conversation_ids,
            scores=[hit.similarity for hit in result.hits],
            search_time_ms=result.search_time_ms,
        )
        return response

    def _hit_message(self, hit: MemoryHit) -> pb.MemoryHit:
        return pb.MemoryHit(memory=self._message(hit.memory), similarity=hit.similarity)

    def _message(self, memory: Memory) -> resources.Memory:
        message = resources.Memory(
            memory_id=str(memory.memory_id),
            conversation_id=str(memory.conversation_id),
            content=memory.content,
            tags=memory.tags,
            # What is not embedded yet will be, by the model in use.
            embedding_dimension=memory.embedding_dimension or self._space().dimensions,
            caller_embedding=memory.caller_embedding,
            version=memory.version,
            create_time=timestamp_message(memory.created_at),
            update_time=timestamp_message(memory.updated_at),
        )
        if memory.metadata:
            message.metadata.update(memory.metadata)
        return message


def _query(request: pb.ListMemoriesRequest, tenant_id: UUID, limit: int) -> MemoryQuery:
    cursor = decode_page_token(request, tenant_id, parts=2)
    return MemoryQuery(
        conversation_id=optional_uuid(request.conversation_id, "conversation_id"),
        tags=tags(request.tags, "tags"),
        limit=limit,
        cursor=decode_time_cursor(cursor),
    )


def _search(
    request: pb.SearchMemoriesRequest,
    tenant_id: UUID,
    space: EmbeddingSpace,
    time_remaining: float | None,
) -> MemorySearch:
    query = text(request.query, "query", max_chars=MAX_QUERY_CHARS)
    embedding = space.vector(request.query_embedding, "query_embedding")
    if embedding is None and not query.strip():
        raise FieldInvalidError("query", "must contain a word, or query_embedding be given", query)
    if embedding is not None and query:
        raise FieldInvalidError("query", "must be empty when query_embedding is given", query)
    bounded(request.top_k, "top_k", low=0, high=MAX_HITS)
    threshold = request.threshold if request.HasField("threshold") else DEFAULT_THRESHOLD
    bounded(threshold, "threshold", low=0, high=1)
    return MemorySearch(
        scope=_scope(request, tenant_id),
        query=query,
        embedding=embedding,
        top_k=request.top_k or DEFAULT_TOP_K,
        threshold=threshold,
        freshness_seconds=freshness_seconds(request.freshness, time_remaining),
        expires_at=expires_at(time_remaining),
    )


def _scope(request: pb.SearchMemoriesRequest, tenant_id: UUID) -> MemoryScope:
    return MemoryScope(
        tenant_id=tenant_id,
        conversation_ids=uuids(
            request.conversation_ids, "conversation_ids", max_items=MAX_SCOPE_IDS
        ),
        agent_id=optional_uuid(request.agent_id, "agent_id"),
        user_id=text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS) or None,
        tags=tags(request.tags, "tags"),
    )
