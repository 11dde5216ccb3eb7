"""Memories of requests to memories of the domain."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from annals.storage.v1 import memory_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.ids import derived_uuid, uuid7
from annals_common.validation import (
    bounded,
    check_count,
    optional_uuid,
    require_text,
    require_uuid,
    struct,
    text,
)
from annals_storage.domain.embedding_bytes import to_bytes
from annals_storage.domain.memories import MemoryChange, NewMemory
from annals_storage.domain.search import DenseVector
from annals_storage.handlers.conversation_input import MAX_METADATA_BYTES, MAX_OWNER_CHARS
from annals_storage.handlers.event_input import MAX_ID_CHARS

MAX_CONTENT_CHARS = 32_768
MAX_TAGS = 64
MAX_TAG_CHARS = 128
MAX_VERSION = 2**31 - 1


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The installation's model, as far as a caller's embedding must fit it."""

    model: str
    dimensions: int

    def vector(self, values: Sequence[float], field: str) -> DenseVector | None:
        """Return the caller's embedding at length 1, None when there is none.

        Raises FieldInvalidError unless it has the model's dimensions, is finite and not zero.
        """
        if not values:
            return None
        if len(values) != self.dimensions:
            described = f"must have {self.dimensions} numbers, the model's dimensions, or none"
            raise FieldInvalidError(field, described, f"{len(values)} numbers")
        exact = np.array(values, np.float64)
        length = float(np.linalg.norm(exact))
        if not math.isfinite(length):
            raise FieldInvalidError(field, "must hold finite numbers only")
        if length == 0.0:
            raise FieldInvalidError(field, "must not be all zero: it has no direction")
        unit: DenseVector = (exact / length).astype(np.float32)
        return unit

    def stored(self, vector: DenseVector | None) -> tuple[bytes | None, str | None]:
        """Return (embedding, embedding_model) as the store keeps them."""
        if vector is None:
            return None, None
        return to_bytes(vector), self.model


def new_memory(request: pb.StoreMemoryRequest, tenant_id: UUID, space: EmbeddingSpace) -> NewMemory:
    """Return a validated memory. Without a conversation, a retry finds it by the key."""
    memory = request.memory
    room = optional_uuid(memory.conversation_id, "memory.conversation_id")
    given_id = optional_uuid(memory.memory_id, "memory.memory_id")
    key = text(request.idempotency_key, "idempotency_key", max_chars=MAX_ID_CHARS) or None
    agent_id, session_id = _anonymous_owner(request, room)
    said: dict[str, Any] = {
        "content": require_text(memory.content, "memory.content", max_chars=MAX_CONTENT_CHARS),
        "tags": tags(memory.tags, "memory.tags"),
        "metadata": struct(memory.metadata, "memory.metadata", max_bytes=MAX_METADATA_BYTES),
    }
    _require_words(said["content"])
    embedding, model = space.stored(space.vector(request.embedding, "embedding"))
    return NewMemory(
        memory_id=given_id or uuid7(),
        conversation_id=room or _anonymous_id(tenant_id, given_id, key, session_id),
        payload_hash=_hash(said, given_id, agent_id, session_id, embedding),
        embedding=embedding,
        embedding_model=model,
        idempotency_key=key,
        anonymous=room is None,
        agent_id=agent_id,
        session_id=session_id,
        **said,
    )


def memory_change(request: pb.UpdateMemoryRequest, space: EmbeddingSpace) -> MemoryChange:
    """Return a validated change."""
    memory = request.memory
    bounded(memory.version, "memory.version", low=0, high=MAX_VERSION)
    values = {path: _changed_value(request, path) for path in _paths(request)}
    vector = space.vector(request.embedding, "embedding")
    if vector is not None and "content" not in values:
        raise FieldInvalidError("embedding", "must be empty unless update_mask names content")
    embedding, model = space.stored(vector)
    return MemoryChange(
        memory_id=require_uuid(memory.memory_id, "memory.memory_id"),
        values=values,
        expected_version=memory.version or None,
        embedding=embedding,
        embedding_model=model,
    )


def tags(values: Sequence[str], field: str) -> tuple[str, ...]:
    """Return the tags in their order, without repeats."""
    check_count(values, field, max_items=MAX_TAGS)
    given = [
        require_text(tag, f"{field}[{i}]", max_chars=MAX_TAG_CHARS) for i, tag in enumerate(values)
    ]
    return tuple(dict.fromkeys(given))


def _require_words(content: str) -> None:
    if not content.strip():
        raise FieldInvalidError("memory.content", "must contain a word", content)


def _anonymous_owner(
    request: pb.StoreMemoryRequest, room: UUID | None
) -> tuple[UUID | None, str | None]:
    agent_id = optional_uuid(request.agent_id, "agent_id")
    session_id = text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS) or None
    for name, value in (("agent_id", agent_id), ("session_id", session_id)):
        if room is not None and value is not None:
            raise FieldInvalidError(name, "must be empty when memory.conversation_id is set", value)
    return agent_id, session_id


def _anonymous_id(
    tenant_id: UUID, given_id: UUID | None, key: str | None, session_id: str | None
) -> UUID:
    """Return the conversation a retry finds again: by the key, else by the memory's own id."""
    owner = (tenant_id.bytes, session_id or "")
    if key is not None:
        return derived_uuid("anonymous memory key", *owner, key)
    if given_id is not None:
        return derived_uuid("anonymous memory", *owner, given_id.bytes)
    return uuid7()


def _hash(said: dict[str, Any], *rest: object) -> bytes:
    encoded = json.dumps([said, *(repr(item) for item in rest)], sort_keys=True)
    return hashlib.sha256(encoded.encode()).digest()[:16]


def _paths(request: pb.UpdateMemoryRequest) -> list[str]:
    paths = sorted(set(request.update_mask.paths))
    if not paths:
        raise FieldInvalidError("update_mask", "is required: any of content, tags, metadata")
    return paths


def _changed_value(request: pb.UpdateMemoryRequest, path: str) -> Any:
    memory = request.memory
    match path:
        case "content":
            content = require_text(memory.content, "memory.content", max_chars=MAX_CONTENT_CHARS)
            _require_words(content)
            return content
        case "tags":
            return tags(memory.tags, "memory.tags")
        case "metadata":
            return struct(memory.metadata, "memory.metadata", max_bytes=MAX_METADATA_BYTES)
        case _:
            raise FieldInvalidError("update_mask", "may name content, tags, metadata", path)
