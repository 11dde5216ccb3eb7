"""Statements worth keeping."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from annals.storage.v1 import memory_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as search_pb
from annals_client.calls import Call, Pages, safe_call, single_call
from annals_client.values import enum_number, struct


def store(
    content: str,
    *,
    conversation_id: str = "",
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    embedding: Sequence[float] = (),
    memory_id: str = "",
    idempotency_key: str = "",
    agent_id: str = "",
    session_id: str = "",
    timeout: float | None = None,
) -> Call[pb.StoreMemoryResponse]:
    """Store a memory. An empty `conversation_id` creates a conversation.

    `embedding`: your own, as long as the installation's model has dimensions. An idempotency
    key is made up when absent and kept over retries.
    """
    memory = res.Memory(
        memory_id=memory_id,
        conversation_id=conversation_id,
        content=content,
        tags=tags,
        metadata=struct(metadata),
    )
    request = pb.StoreMemoryRequest(
        memory=memory,
        embedding=embedding,
        idempotency_key=idempotency_key or str(uuid.uuid4()),
        agent_id=agent_id,
        session_id=session_id,
    )
    return safe_call(lambda stubs: stubs.memories.StoreMemory, request, timeout)


def get(memory_id: str, *, timeout: float | None = None) -> Call[res.Memory]:
    """Read one memory."""
    request = pb.GetMemoryRequest(memory_id=memory_id)
    call = safe_call(lambda stubs: stubs.memories.GetMemory, request, timeout)
    return call.map(lambda answer: answer.memory)


def list_all(
    *,
    conversation_id: str = "",
    tags: Sequence[str] = (),
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Memory]:
    """Memories with all of these tags, newest first."""
    request = pb.ListMemoriesRequest(
        conversation_id=conversation_id, tags=tags, page_size=page_size
    )
    call = safe_call(lambda stubs: stubs.memories.ListMemories, request, timeout)
    return Pages(call, lambda answer: answer.memories, limit)


def update(
    memory_id: str,
    *,
    content: str | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    embedding: Sequence[float] = (),
    version: int = 0,
    timeout: float | None = None,
) -> Call[res.Memory]:
    """Change what is given; None leaves a field alone. Not repeated by itself."""
    changes: dict[str, Any] = {"content": content, "tags": tags, "metadata": struct(metadata)}
    given = {name: value for name, value in changes.items() if value is not None}
    request = pb.UpdateMemoryRequest(
        memory=res.Memory(memory_id=memory_id, version=version, **given),
        update_mask=FieldMask(paths=list(given)),
        embedding=embedding,
    )
    call = single_call(lambda stubs: stubs.memories.UpdateMemory, request, timeout)
    return call.map(lambda answer: answer.memory)


def delete(memory_id: str, *, timeout: float | None = None) -> Call[None]:
    """Delete a memory for good. Not repeated by itself: the second time it is not found."""
    request = pb.DeleteMemoryRequest(memory_id=memory_id)
    call = single_call(lambda stubs: stubs.memories.DeleteMemory, request, timeout)
    return call.map(lambda _answer: None)


def search(
    query: str = "",
    *,
    conversation_ids: Sequence[str] = (),
    query_embedding: Sequence[float] = (),
    top_k: int = 0,
    threshold: float | None = None,
    tags: Sequence[str] = (),
    agent_id: str = "",
    user_id: str = "",
    freshness: int | str = "eventual",
    timeout: float | None = None,
) -> Call[pb.SearchMemoriesResponse]:
    """Find memories by meaning, in these conversations or in all, most similar first.

    `top_k` 0: 5. `threshold`: cosine similarity, None: 0.5. `freshness`: eventual or
    read-your-writes.
    """
    request = pb.SearchMemoriesRequest(
        conversation_ids=conversation_ids,
        query=query,
        query_embedding=query_embedding,
        top_k=top_k,
        threshold=threshold,
        tags=tags,
        agent_id=agent_id,
        user_id=user_id,
        freshness=enum_number(search_pb.SearchFreshness, "SEARCH_FRESHNESS_", freshness),
    )
    return safe_call(lambda stubs: stubs.memories.SearchMemories, request, timeout)
