"""EventService: reading and listing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_common.validation import (
    bounded,
    check_response_size,
    optional_uuid,
    require_uuid,
    uuids,
)
from annals_storage.domain.events import Event
from annals_storage.handlers.access import Access, own_data_tenant
from annals_storage.handlers.event_queries import (
    MAX_SEQ,
    decode_seq_cursor,
    list_query,
    next_page_token,
    read_page,
)
from annals_storage.handlers.output import event_message
from annals_storage.handlers.ownership import refuse_hidden
from annals_storage.ports.events import EventStore

MAX_BATCH_IDS = 1_000


class EventReadHandler:
    """Translates."""

    def __init__(self, events: EventStore, access: Access) -> None:
        self._events, self._access = events, access

    async def GetEvent(self, request: pb.GetEventRequest, context: Any) -> pb.GetEventResponse:
        tenant_id = own_data_tenant("GetEvent")
        event_id = optional_uuid(request.event_id, "event_id")
        if event_id is None:
            return pb.GetEventResponse(event=event_message(await self._by_seq(request, tenant_id)))
        found = (await self._events.get(tenant_id, [event_id])).get(event_id)
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        if found is None or conversation_id not in (None, found.conversation_id):
            raise ResourceNotFoundError("event", str(event_id))
        if not await self._access.reachable([found.conversation_id]):
            raise ResourceNotFoundError("event", str(event_id))
        return pb.GetEventResponse(event=event_message(found))

    async def BatchGetEvents(
        self, request: pb.BatchGetEventsRequest, context: Any
    ) -> pb.BatchGetEventsResponse:
        tenant_id = own_data_tenant("BatchGetEvents")
        if not request.event_ids:
            raise FieldInvalidError("event_ids", f"is required: 1–{MAX_BATCH_IDS:,} UUIDs")
        wanted = uuids(request.event_ids, "event_ids", max_items=MAX_BATCH_IDS)
        found = await self._reachable(await self._events.get(tenant_id, wanted))
        response = pb.BatchGetEventsResponse(
            events=[event_message(found[event_id]) for event_id in wanted if event_id in found],
            missing_event_ids=[str(event_id) for event_id in wanted if event_id not in found],
        )
        check_response_size(response, "event_ids")
        return response

    async def ListEvents(
        self, request: pb.ListEventsRequest, context: Any
    ) -> pb.ListEventsResponse:
        tenant_id = own_data_tenant("ListEvents")
        refuse_hidden(show_deleted=request.show_deleted)
        cursor = decode_seq_cursor(request, tenant_id)
        query = list_query(request, cursor)
        await self._access.conversation("ListEvents", query.conversation_id)
        page = await read_page(self._events, tenant_id, query, cursor)
        return pb.ListEventsResponse(
            events=[event_message(event) for event in page.events],
            next_page_token=next_page_token(request, tenant_id, page),
        )

    async def _reachable(self, found: dict[UUID, Event]) -> dict[UUID, Event]:
        mine = await self._access.reachable({event.conversation_id for event in found.values()})
        return {key: event for key, event in found.items() if event.conversation_id in mine}

    async def _by_seq(self, request: pb.GetEventRequest, tenant_id: UUID) -> Event:
        conversation_id = require_uuid(
            request.conversation_id, "event_id (or conversation_id and seq)"
        )
        bounded(request.seq, "seq", low=1, high=MAX_SEQ)
        found = await self._events.get_by_seq(tenant_id, conversation_id, request.seq)
        if found is None or not await self._access.reachable([conversation_id]):
            raise ResourceNotFoundError("event", f"{conversation_id} seq {request.seq}")
        return found
