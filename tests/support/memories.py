"""Stores and finds memories with nothing added on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.storage import Tenant

from annals.storage.v1 import memory_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res

DIMENSIONS = 384


def axis(index: int, value: float = 1.0) -> list[float]:
    """An embedding along one axis."""
    return [value if i == index else 0.0 for i in range(DIMENSIONS)]


async def store(
    tenant: Tenant,
    content: str,
    *,
    conversation_id: str = "",
    memory_id: str = "",
    tags: Sequence[str] = (),
    metadata: dict[str, Any] | None = None,
    **fields: Any,
) -> pb.StoreMemoryResponse:
    memory = res.Memory(
        conversation_id=conversation_id, memory_id=memory_id, content=content, tags=tags
    )
    memory.metadata.update(metadata or {})
    request = pb.StoreMemoryRequest(memory=memory, **fields)
    response: pb.StoreMemoryResponse = await tenant.raw.call("StoreMemory", request)
    return response


async def remembered(tenant: Tenant, content: str, **fields: Any) -> res.Memory:
    """A stored memory."""
    memory: res.Memory = (await store(tenant, content, **fields)).memory
    return memory


async def update(tenant: Tenant, memory: res.Memory, *paths: str, **fields: Any) -> res.Memory:
    request = pb.UpdateMemoryRequest(memory=memory, **fields)
    request.update_mask.paths.extend(paths)
    changed: res.Memory = (await tenant.raw.call("UpdateMemory", request)).memory
    return changed


async def find(tenant: Tenant, query: str = "", **fields: Any) -> pb.SearchMemoriesResponse:
    """Search for what was stored before this call."""
    fields.setdefault("freshness", "SEARCH_FRESHNESS_READ_YOUR_WRITES")
    request = pb.SearchMemoriesRequest(query=query, **fields)
    response: pb.SearchMemoriesResponse = await tenant.raw.call("SearchMemories", request)
    return response


async def found_ids(tenant: Tenant, query: str = "", **fields: Any) -> list[str]:
    return [hit.memory.memory_id for hit in (await find(tenant, query, **fields)).hits]


async def listed(tenant: Tenant, **query: Any) -> list[res.Memory]:
    """All memories of a list, over all pages."""
    found: list[res.Memory] = []
    token = ""
    while True:
        request = pb.ListMemoriesRequest(page_token=token, **query)
        page = await tenant.raw.call("ListMemories", request)
        found += page.memories
        token = page.next_page_token
        if not token:
            return found
