"""EventService: turns, edits, deletions, history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from google.protobuf.message import Message

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_common.paging import encode_page_token
from annals_common.principal import Actor, current_principal
from annals_common.validation import require_uuid
from annals_storage.commands.changing import ChangeEvents
from annals_storage.domain.changing import Observation, ObservationKind, StoredTurn
from annals_storage.handlers.access import (
    Access,
    data_tenant,
    own_data_tenant,
    refuse_publishable,
)
from annals_storage.handlers.event_change_input import event_edit, history_query, turn_store
from annals_storage.handlers.event_input import LARGE_REQUEST_BYTES, CountsTokens
from annals_storage.handlers.output import event_message, timestamp_message

T = TypeVar("T")
OBSERVATION_KINDS = {
    ObservationKind.STORE: pb.OBSERVATION_KIND_STORE,
    ObservationKind.EDIT: pb.OBSERVATION_KIND_EDIT,
    ObservationKind.REVERT: pb.OBSERVATION_KIND_REVERT,
    ObservationKind.DELETE: pb.OBSERVATION_KIND_DELETE,
    ObservationKind.RESTORE: pb.OBSERVATION_KIND_RESTORE,
}


class EventChangesHandler:
    """Translates; the use cases are in commands.changing."""

    def __init__(self, *, changes: ChangeEvents, counter: CountsTokens, access: Access) -> None:
        self._changes, self._counter, self._access = changes, counter, access

    async def StoreTurn(self, request: pb.StoreTurnRequest, context: Any) -> pb.StoreTurnResponse:
        refuse_publishable("StoreTurn")
        tenant_id = own_data_tenant("StoreTurn")
        own = await self._access.target(
            "StoreTurn", request.conversation_id, request.host_conversation_id
        )
        if own is not None:
            request.conversation_id, request.host_conversation_id = str(own), ""
        turn = await self._parsed(turn_store, request, tenant_id)
        return _stored_message(await self._changes.store_turn(turn))

    async def EditEvent(self, request: pb.EditEventRequest, context: Any) -> pb.EditEventResponse:
        tenant_id = data_tenant("EditEvent")
        edit = await self._parsed(event_edit, request, tenant_id)
        edited = await self._changes.edit(edit)
        return pb.EditEventResponse(event=event_message(edited.event), replayed=edited.replayed)

    async def DeleteEvent(
        self, request: pb.DeleteEventRequest, context: Any
    ) -> pb.DeleteEventResponse:
        tenant_id, event_id = data_tenant("DeleteEvent"), require_uuid(request.event_id, "event_id")
        event = await self._changes.set_deleted(tenant_id, event_id, _actor(), deleted=True)
        return pb.DeleteEventResponse(event=event_message(event))

    async def RestoreEvent(
        self, request: pb.RestoreEventRequest, context: Any
    ) -> pb.RestoreEventResponse:
        tenant_id = data_tenant("RestoreEvent")
        event_id = require_uuid(request.event_id, "event_id")
        event = await self._changes.set_deleted(tenant_id, event_id, _actor(), deleted=False)
        return pb.RestoreEventResponse(event=event_message(event))

    async def ListObservations(
        self, request: pb.ListObservationsRequest, context: Any
    ) -> pb.ListObservationsResponse:
        tenant_id = data_tenant("ListObservations")
        page = await self._changes.history(tenant_id, history_query(request, tenant_id))
        response = pb.ListObservationsResponse(
            observations=[observation_message(item) for item in page.observations]
        )
        if page.has_more:
            cursor = [str(page.observations[-1].version)]
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def _parsed(
        self, parse: Callable[[Any, UUID, CountsTokens], T], request: Message, tenant_id: UUID
    ) -> T:
        if request.ByteSize() > LARGE_REQUEST_BYTES:
            return await asyncio.to_thread(parse, request, tenant_id, self._counter)
        return parse(request, tenant_id, self._counter)


def _actor() -> Actor:
    return current_principal().actor


def _stored_message(stored: StoredTurn) -> pb.StoreTurnResponse:
    superseded = stored.superseded_event_id
    return pb.StoreTurnResponse(
        event=event_message(stored.event),
        observation_version=stored.observation_version,
        replayed=stored.replayed,
        created=stored.created,
        superseded_event_id=str(superseded) if superseded else "",
    )


def observation_message(observation: Observation) -> pb.Observation:
    """Return the observation as the API shows it."""
    return pb.Observation(
        event_id=str(observation.event.event_id),
        version=observation.version,
        kind=OBSERVATION_KINDS[observation.kind],
        event=event_message(observation.event),
        idempotency_key=observation.idempotency_key or "",
        actor=actor_message(observation.actor),
        create_time=timestamp_message(observation.created_at),
    )


def actor_message(actor: Actor) -> res.Actor:
    """Return who acted as the API shows it."""
    return res.Actor(
        api_key_id=str(actor.api_key_id) if actor.api_key_id else "",
        user_id=actor.user_id or "",
        session_id=actor.session_id or "",
    )
