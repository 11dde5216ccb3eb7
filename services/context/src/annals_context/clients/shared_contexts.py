"""Contexts that storage keeps for all processes."""

from __future__ import annotations

import grpc.aio

from annals.storage.v1 import context_cache_service_pb2 as pb
from annals.storage.v1 import context_cache_service_pb2_grpc as pb_grpc
from annals_context.clients.calling import call
from annals_context.ports import CachedAnswer, Caller, ContextToKeep


class GrpcSharedContexts:
    """The storage service behind a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._cache = pb_grpc.ContextCacheServiceStub(channel)

    async def find(
        self,
        caller: Caller,
        conversation_id: str,
        request_digest: bytes,
        *,
        held_state: bytes,
        previous_version: str,
    ) -> CachedAnswer:
        """Return the present state and what is kept in it, save what the caller holds."""
        request = pb.GetCachedContextRequest(
            conversation_id=conversation_id,
            request_digest=request_digest,
            held_state=held_state,
            previous_context_version=previous_version,
        )
        found = await call(self._cache.GetCachedContext, request, caller)
        return CachedAnswer(found.state, found.body, found.previous_body)

    async def keep(self, caller: Caller, context: ContextToKeep) -> tuple[bool, bool]:
        """Return whether the state is still the same, and whether it is kept."""
        request = pb.PutCachedContextRequest(
            conversation_id=context.conversation_id,
            request_digest=context.request_digest,
            state=context.state,
            context_version=context.context_version,
            body=context.body,
        )
        answer = await call(self._cache.PutCachedContext, request, caller)
        return answer.current, answer.kept
