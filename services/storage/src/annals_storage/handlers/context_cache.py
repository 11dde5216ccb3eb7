"""ContextCacheService."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import context_cache_service_pb2 as pb
from annals.storage.v1 import context_cache_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError, LimitExceededError
from annals_common.settings import MEBIBYTE
from annals_common.validation import plain_text, require_uuid
from annals_storage.domain.context_cache import NewContext, WantedContext
from annals_storage.handlers.access import data_tenant
from annals_storage.ports.context_cache import ContextCacheStore

DIGEST_BYTES = 32
MAX_VERSION_CHARS = 64
MAX_BODY_BYTES = 4 * MEBIBYTE


class ContextCacheHandler(pb_grpc.ContextCacheServiceServicer):
    """Translates. What is kept shows a whole conversation, so end users reach none of it."""

    def __init__(self, contexts: ContextCacheStore) -> None:
        self._contexts = contexts

    async def GetCachedContext(
        self, request: pb.GetCachedContextRequest, context: Any
    ) -> pb.GetCachedContextResponse:
        tenant_id = data_tenant("GetCachedContext")
        previous = request.previous_context_version
        wanted = WantedContext(
            conversation_id=require_uuid(request.conversation_id, "conversation_id"),
            request_digest=_digest(request.request_digest, "request_digest"),
            held_state=_digest(request.held_state, "held_state") if request.held_state else b"",
            previous_version=_version(previous, "previous_context_version") if previous else "",
        )
        found = await self._contexts.get(tenant_id, wanted)
        return pb.GetCachedContextResponse(
            state=found.state,
            conversation_version=found.conversation_version,
            body=found.body,
            previous_body=found.previous_body,
        )

    async def PutCachedContext(
        self, request: pb.PutCachedContextRequest, context: Any
    ) -> pb.PutCachedContextResponse:
        tenant_id = data_tenant("PutCachedContext")
        new = NewContext(
            conversation_id=require_uuid(request.conversation_id, "conversation_id"),
            request_digest=_digest(request.request_digest, "request_digest"),
            state=_digest(request.state, "state"),
            context_version=_version(request.context_version, "context_version"),
            body=_body(request.body),
        )
        is_current, is_kept = await self._contexts.put(tenant_id, new)
        return pb.PutCachedContextResponse(current=is_current, kept=is_kept)


def _digest(value: bytes, field: str) -> bytes:
    if len(value) != DIGEST_BYTES:
        raise FieldInvalidError(field, f"must be {DIGEST_BYTES} bytes", f"{len(value)} bytes")
    return value


def _version(value: str, field: str) -> str:
    return plain_text(value, field, max_chars=MAX_VERSION_CHARS)


def _body(value: bytes) -> bytes:
    if len(value) > MAX_BODY_BYTES:
        raise LimitExceededError("body", limit=MAX_BODY_BYTES, actual=len(value), unit="bytes")
    return value
