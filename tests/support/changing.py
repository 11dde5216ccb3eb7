"""Turns, edits and histories with nothing added on the way."""

from __future__ import annotations

from typing import Any

from tests.support.raw import Raw

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res


async def store(
    raw: Raw, conversation_id: str, turn_id: str, event: pb.NewEvent, **fields: Any
) -> pb.StoreTurnResponse:
    """Store a turn."""
    request = pb.StoreTurnRequest(
        conversation_id=conversation_id, turn_id=turn_id, event=event, **fields
    )
    response: pb.StoreTurnResponse = await raw.call("StoreTurn", request)
    return response


async def edit(
    raw: Raw, event_id: str, event: pb.NewEvent, *update_fields: str, **fields: Any
) -> pb.EditEventResponse:
    """Edit an event."""
    request = pb.EditEventRequest(
        event_id=event_id, event=event, update_fields=update_fields, **fields
    )
    response: pb.EditEventResponse = await raw.call("EditEvent", request)
    return response


async def delete(raw: Raw, event_id: str) -> res.Event:
    """Delete an event; return it."""
    response = await raw.call("DeleteEvent", pb.DeleteEventRequest(event_id=event_id))
    event: res.Event = response.event
    return event


async def restore(raw: Raw, event_id: str) -> res.Event:
    """Restore an event; return it."""
    response = await raw.call("RestoreEvent", pb.RestoreEventRequest(event_id=event_id))
    event: res.Event = response.event
    return event


async def history(raw: Raw, event_id: str = "", **fields: Any) -> list[pb.Observation]:
    """Every observation of an event, newest first, over all pages."""
    request = pb.ListObservationsRequest(event_id=event_id, **fields)
    found: list[pb.Observation] = []
    while True:
        page = await raw.call("ListObservations", request)
        found.extend(page.observations)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def revert(raw: Raw, conversation_id: str, event_id: str = "") -> int:
    """Open a branch at an event and make it current; return its number."""
    request = pb.RevertToEventRequest(conversation_id=conversation_id, event_id=event_id)
    response = await raw.call("RevertToEvent", request)
    branch: int = response.branch.branch
    return branch


def texts(observations: list[pb.Observation]) -> list[str]:
    """The contents of messages."""
    return [observation.event.message.content for observation in observations]
