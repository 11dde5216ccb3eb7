"""EventService."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import event_service_pb2_grpc as pb_grpc
from annals_common.errors import (
    FieldInvalidError,
    LimitExceededError,
    PageTokenInvalidError,
    ResourceNotFoundError,
)
from annals_common.ids import derived_uuid, uuid7
from annals_common.paging import decode_page_token, encode_page_token
from annals_common.principal import current_principal
from annals_common.settings import MAX_REQUEST_BYTES
from annals_common.validation import (
    bounded,
    check_count,
    check_response_size,
    enums,
    optional_uuid,
    page_size,
    require_text,
    require_uuid,
    text,
    timestamp,
    uuids,
)
from annals_storage.commands.grouping import GroupCommit
from annals_storage.domain.appending import Append
from annals_storage.domain.events import Event, EventQuery, NewEvent
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.enums import EVENT_TYPES, ROLES
from annals_storage.handlers.event_input import MAX_ID_CHARS, new_events, request_hash
from annals_storage.handlers.output import append_response, event_message
from annals_storage.handlers.progress import StreamProgress
from annals_storage.ports import EventStore, TokenCounter

LARGE_REQUEST_BYTES = 64 * 1024
"""Counting the tokens of more than this would hold up other calls: a thread does it."""
MAX_BATCH_IDS = 1_000
MAX_TOOL_NAMES = 100
MAX_SEQ = 2**62
MAX_BRANCH = 2**31 - 1
_SEQ = re.compile(r"[0-9]{1,18}")


class EventHandler(pb_grpc.EventServiceServicer):
    """Translates; the write path is commands.grouping."""

    def __init__(self, *, grouping: GroupCommit, events: EventStore, counter: TokenCounter) -> None:
        self._grouping, self._events, self._counter = grouping, events, counter

    async def AppendEvents(
        self, request: pb.AppendEventsRequest, context: Any
    ) -> pb.AppendEventsResponse:
        append = await self._append(request, data_tenant("AppendEvents"))
        return append_response(await self._grouping.append(append))

    async def StreamAppendEvents(
        self, request_iterator: AsyncIterator[pb.StreamAppendEventsRequest], context: Any
    ) -> AsyncIterator[pb.StreamAppendEventsResponse]:
        tenant_id = data_tenant("StreamAppendEvents")
        progress = StreamProgress()
        async for request in request_iterator:
            append = await self._append(request.append, tenant_id)
            yield progress.acknowledge(await self._grouping.append(append))

    async def GetEvent(self, request: pb.GetEventRequest, context: Any) -> pb.GetEventResponse:
        tenant_id = data_tenant("GetEvent")
        event_id = optional_uuid(request.event_id, "event_id")
        if event_id is None:
            return pb.GetEventResponse(event=event_message(await self._by_seq(request, tenant_id)))
        found = (await self._events.get(tenant_id, [event_id])).get(event_id)
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        if found is None or conversation_id not in (None, found.conversation_id):
            raise ResourceNotFoundError("event", str(event_id))
        return pb.GetEventResponse(event=event_message(found))

    async def BatchGetEvents(
        self, request: pb.BatchGetEventsRequest, context: Any
    ) -> pb.BatchGetEventsResponse:
        tenant_id = data_tenant("BatchGetEvents")
        if not request.event_ids:
            raise FieldInvalidError("event_ids", f"is required: 1–{MAX_BATCH_IDS:,} UUIDs")
        wanted = uuids(request.event_ids, "event_ids", max_items=MAX_BATCH_IDS)
        found = await self._events.get(tenant_id, wanted)
        response = pb.BatchGetEventsResponse(
            events=[event_message(found[event_id]) for event_id in wanted if event_id in found],
            missing_event_ids=[str(event_id) for event_id in wanted if event_id not in found],
        )
        check_response_size(response, "event_ids")
        return response

    async def ListEvents(
        self, request: pb.ListEventsRequest, context: Any
    ) -> pb.ListEventsResponse:
        tenant_id = data_tenant("ListEvents")
        query = _query(request, tenant_id)
        page = await self._events.page(tenant_id, query)
        response = pb.ListEventsResponse(events=[event_message(event) for event in page.events])
        if page.has_more:
            cursor = [str(page.events[-1].seq)]
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def _by_seq(self, request: pb.GetEventRequest, tenant_id: UUID) -> Event:
        conversation_id = require_uuid(
            request.conversation_id, "event_id (or conversation_id and seq)"
        )
        bounded(request.seq, "seq", low=1, high=MAX_SEQ)
        found = await self._events.get_by_seq(tenant_id, conversation_id, request.seq)
        if found is None:
            raise ResourceNotFoundError("event", f"{conversation_id} seq {request.seq}")
        return found

    async def _append(self, request: pb.AppendEventsRequest, tenant_id: UUID) -> Append:
        size = request.ByteSize()
        if size > MAX_REQUEST_BYTES:
            raise LimitExceededError("events", limit=MAX_REQUEST_BYTES, actual=size, unit="bytes")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        _check_condition(request)
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


def _query(request: pb.ListEventsRequest, tenant_id: UUID) -> EventQuery:
    bounded(request.after_seq, "after_seq", low=0, high=MAX_SEQ)
    bounded(request.before_seq, "before_seq", low=0, high=MAX_SEQ)
    if request.order not in pb.SortOrder.values():
        raise FieldInvalidError("order", "must be one of the known values", request.order)
    check_count(request.tool_names, "tool_names", max_items=MAX_TOOL_NAMES)
    descending = request.order == pb.SORT_ORDER_DESCENDING
    after_seq, before_seq = _range(request, tenant_id, descending=descending)
    return EventQuery(
        conversation_id=require_uuid(request.conversation_id, "conversation_id"),
        after_seq=after_seq,
        before_seq=before_seq or None,
        start_time=timestamp(request.start_time, "start_time")
        if request.HasField("start_time")
        else None,
        end_time=timestamp(request.end_time, "end_time") if request.HasField("end_time") else None,
        types=enums(request.types, EVENT_TYPES, "types"),
        roles=enums(request.roles, ROLES, "roles"),
        tool_names=tuple(
            require_text(name, f"tool_names[{i}]", max_chars=MAX_ID_CHARS)
            for i, name in enumerate(request.tool_names)
        ),
        descending=descending,
        limit=page_size(request.page_size),
    )


def _range(request: pb.ListEventsRequest, tenant_id: UUID, *, descending: bool) -> tuple[int, int]:
    """Return (after_seq, before_seq), narrowed by the page token."""
    cursor = decode_page_token(request, tenant_id, parts=1)
    if cursor is None:
        return request.after_seq, request.before_seq
    if not _SEQ.fullmatch(cursor[0]):
        raise PageTokenInvalidError
    seq = int(cursor[0])
    return (request.after_seq, seq) if descending else (seq, request.before_seq)
