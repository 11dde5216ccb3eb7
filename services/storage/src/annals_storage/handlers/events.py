"""EventService: appending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import (
    FieldInvalidError,
    LimitExceededError,
)
from annals_common.ids import derived_uuid, uuid7
from annals_common.principal import current_principal
from annals_common.settings import MAX_REQUEST_BYTES
from annals_common.validation import (
    bounded,
    optional_uuid,
    text,
)
from annals_storage.commands.grouping import GroupCommit
from annals_storage.domain.appending import Append
from annals_storage.domain.events import NewEvent
from annals_storage.handlers.access import Access, own_data_tenant
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.event_input import LARGE_REQUEST_BYTES, new_events, request_hash
from annals_storage.handlers.event_queries import MAX_BRANCH, MAX_SEQ
from annals_storage.handlers.output import append_response
from annals_storage.handlers.ownership import check_own_events
from annals_storage.handlers.progress import StreamProgress
from annals_storage.ports.embedding import TokenCounter


class EventHandler:
    """Appends; translates, the write path is commands.grouping."""

    def __init__(self, *, grouping: GroupCommit, counter: TokenCounter, access: Access) -> None:
        self._grouping, self._counter, self._access = grouping, counter, access

    async def AppendEvents(
        self, request: pb.AppendEventsRequest, context: Any
    ) -> pb.AppendEventsResponse:
        tenant_id = own_data_tenant("AppendEvents")
        await self._access.target("AppendEvents", request.conversation_id)
        append = await self._append(request, tenant_id)
        return append_response(await self._grouping.append(append))

    async def StreamAppendEvents(
        self, request_iterator: AsyncIterator[pb.StreamAppendEventsRequest], context: Any
    ) -> AsyncIterator[pb.StreamAppendEventsResponse]:
        tenant_id = own_data_tenant("StreamAppendEvents")
        progress = StreamProgress()
        async for request in request_iterator:
            await self._access.target("StreamAppendEvents", request.append.conversation_id)
            append = replace(await self._append(request.append, tenant_id), bulk=True)
            yield progress.acknowledge(await self._grouping.append(append))

    async def _append(self, request: pb.AppendEventsRequest, tenant_id: UUID) -> Append:
        size = request.ByteSize()
        if size > MAX_REQUEST_BYTES:
            raise LimitExceededError("events", limit=MAX_REQUEST_BYTES, actual=size, unit="bytes")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        _check_condition(request)
        check_own_events(request.events)
        agent_id, session_id = _anonymous_owner(request, conversation_id)
        request_id = optional_uuid(request.request_id, "request_id")
        if size > LARGE_REQUEST_BYTES:
            events = await asyncio.to_thread(new_events, request.events, self._counter)
        else:
            events = new_events(request.events, self._counter)
        return Append(
            tenant_id=tenant_id,
            conversation_id=conversation_id or _anonymous_id(request, tenant_id),
            events=events,
            payload_hash=_call_hash(request, events, agent_id, session_id),
            request_id=request_id,
            expected_last_seq=request.expected_last_seq
            if request.HasField("expected_last_seq")
            else None,
            anonymous=conversation_id is None,
            agent_id=agent_id,
            session_id=session_id,
            branch=request.branch or None,
            actor=current_principal().actor,
        )


def _check_condition(request: pb.AppendEventsRequest) -> None:
    bounded(request.expected_last_seq, "expected_last_seq", low=0, high=MAX_SEQ)
    bounded(request.branch, "branch", low=0, high=MAX_BRANCH)


def _call_hash(
    request: pb.AppendEventsRequest,
    events: Sequence[NewEvent],
    agent_id: UUID | None,
    session_id: str | None,
) -> bytes:
    # The branch only where one was named: hashes of calls from before branches stay valid.
    branch = (request.branch,) if request.branch else ()
    return request_hash(events, agent_id, session_id, *branch)


def _anonymous_owner(
    request: pb.AppendEventsRequest, conversation_id: UUID | None
) -> tuple[UUID | None, str | None]:
    for name in ("agent_id", "session_id"):
        value = getattr(request, name)
        if conversation_id and value:
            raise FieldInvalidError(name, "is only for anonymous conversations", value)
    agent_id = optional_uuid(request.agent_id, "agent_id")
    session_id = text(request.session_id, "session_id", max_chars=MAX_OWNER_CHARS)
    return agent_id, session_id or None


def _anonymous_id(request: pb.AppendEventsRequest, tenant_id: UUID) -> UUID:
    """Return the id a retry of this call arrives at again, where it carries a key."""
    owner = (tenant_id.bytes, request.agent_id, request.session_id)
    if request.request_id:
        return derived_uuid("anonymous request", *owner, request.request_id.lower())
    if key := request.events[0].idempotency_key:
        return derived_uuid("anonymous key", *owner, key)
    return uuid7()
