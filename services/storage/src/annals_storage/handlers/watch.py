"""WatchEvents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

import grpc.aio

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, WatcherTooSlowError
from annals_common.validation import bounded, optional_uuid
from annals_storage.commands.watch_sources import WatchRequest
from annals_storage.commands.watching import WatchEvents
from annals_storage.domain.watching import WatchPage
from annals_storage.handlers.access import Access, own_data_tenant
from annals_storage.handlers.output import event_message
from annals_storage.handlers.watch_tokens import Watched, read_token, write_token

_NOTHING: tuple[pb.WatchEventsResponse, ...] = ()
WRITE_SECONDS = 60.0
"""How long a client may leave an answer unread."""
MAX_SEQ = 2**62
MAX_BRANCH = 2**31 - 1


class WatchHandler:
    """Streams pages; the client's own pace is what holds the next one back."""

    def __init__(self, watch: WatchEvents, access: Access) -> None:
        self._watch, self._access = watch, access

    async def WatchEvents(
        self, request: pb.WatchEventsRequest, context: Any
    ) -> AsyncIterator[pb.WatchEventsResponse]:
        watched = _watched(request, await self._own_tenant(request))
        async with aclosing(self._watch(_watch_request(request, watched))) as pages:
            async for page in pages:
                # Whose it is may have changed since the last page.
                await self._own_tenant(request)
                await self._write(context, _response(page, watched))
        # Answers are written above, within a time; none is left to yield.
        for response in _NOTHING:
            yield response

    async def _own_tenant(self, request: pb.WatchEventsRequest) -> UUID:
        """Return the caller's tenant. An end user watches a conversation, and an own one."""
        await self._access.target("WatchEvents", request.conversation_id)
        return own_data_tenant("WatchEvents")

    async def _write(self, context: Any, response: pb.WatchEventsResponse) -> None:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await context.write(response)
        except TimeoutError as error:
            raise WatcherTooSlowError from error
        except grpc.aio.InternalError as error:
            # Who watched has gone in the middle of an answer.
            raise asyncio.CancelledError from error


def _watched(request: pb.WatchEventsRequest, tenant_id: UUID) -> Watched:
    conversation_id = optional_uuid(request.conversation_id, "conversation_id")
    agent_id = optional_uuid(request.agent_id, "agent_id")
    if conversation_id is None and agent_id is None:
        raise FieldInvalidError("conversation_id", "is required, or agent_id: a UUID")
    if conversation_id is not None and agent_id is not None:
        raise FieldInvalidError(
            "agent_id", "must be empty when conversation_id is set", request.agent_id
        )
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)
    if agent_id is not None and request.branch:
        raise FieldInvalidError("branch", "is only for a conversation", request.branch)
    return Watched(tenant_id, conversation_id, agent_id, request.branch or None)


def _watch_request(request: pb.WatchEventsRequest, watched: Watched) -> WatchRequest:
    bounded(request.after_seq, "after_seq", low=0, high=MAX_SEQ)
    after_seq = request.after_seq if request.HasField("after_seq") else None
    if after_seq is not None and watched.agent_id is not None:
        raise FieldInvalidError("after_seq", "is only for a conversation", after_seq)
    token = read_token(request.resume_token, watched)
    return WatchRequest(
        tenant_id=watched.tenant_id,
        conversation_id=watched.conversation_id,
        agent_id=watched.agent_id,
        branch=watched.branch,
        after_seq=after_seq,
        incarnation=token.incarnation if token else "",
        cursor=token.cursor if token else None,
    )


def _response(page: WatchPage, watched: Watched) -> pb.WatchEventsResponse:
    return pb.WatchEventsResponse(
        events=[event_message(event) for event in page.events],
        resume_token=write_token(page.cursor, watched),
    )
