"""Changes of events: nothing is overwritten, every change is an observation."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, Pages, safe_call, single_call


def edit(
    event_id: str,
    content: pb.NewEvent,
    *,
    update_fields: Sequence[str] = (),
    expected_version: int = 0,
    timeout: float | None = None,
) -> Call[pb.EditEventResponse]:
    """Replace the content of an event; the former content stays in its observations.

    `update_fields`: body, model, provider_response_id, usage, metadata, status; none: the body.
    An idempotency key is made up when `content` has none and kept over retries.
    """
    request = pb.EditEventRequest(
        event_id=event_id,
        event=content,
        update_fields=update_fields,
        expected_version=expected_version,
    )
    _add_key(request.event)
    return safe_call(lambda stubs: stubs.events.EditEvent, request, timeout)


def delete(event_id: str, *, timeout: float | None = None) -> Call[res.Event]:
    """Hide an event until restored; deleting twice is no error."""
    request = pb.DeleteEventRequest(event_id=event_id)
    call = safe_call(lambda stubs: stubs.events.DeleteEvent, request, timeout)
    return call.map(lambda answer: answer.event)


def restore(event_id: str, *, timeout: float | None = None) -> Call[res.Event]:
    """Bring a deleted event back; restoring twice is no error."""
    request = pb.RestoreEventRequest(event_id=event_id)
    call = safe_call(lambda stubs: stubs.events.RestoreEvent, request, timeout)
    return call.map(lambda answer: answer.event)


def store_turn(
    turn_id: str,
    event: pb.NewEvent,
    *,
    conversation_id: str = "",
    host_conversation_id: str = "",
    agent_id: str = "",
    session_id: str = "",
    timeout: float | None = None,
) -> Call[pb.StoreTurnResponse]:
    """Store what a logical slot holds now. The first store of a turn makes an event, each
    further one an observation of it.

    `conversation_id`, or `host_conversation_id` (the host application's own id), or neither: a
    conversation is created. An idempotency key is made up when `event` has none and kept over
    retries.
    """
    request = pb.StoreTurnRequest(
        conversation_id=conversation_id,
        host_conversation_id=host_conversation_id,
        turn_id=turn_id,
        event=event,
        agent_id=agent_id,
        session_id=session_id,
    )
    _add_key(request.event)
    return safe_call(lambda stubs: stubs.events.StoreTurn, request, timeout)


def observations(
    event_id: str = "",
    *,
    turn_key: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.Observation]:
    """The history of an event, newest first: by its id, or by "conversation_id:turn_id"."""
    request = pb.ListObservationsRequest(event_id=event_id, turn_key=turn_key, page_size=page_size)
    call = safe_call(lambda stubs: stubs.events.ListObservations, request, timeout)
    return Pages(call, lambda answer: answer.observations, limit)


def revert(
    conversation_id: str,
    event_id: str = "",
    *,
    display_name: str = "",
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[res.Branch]:
    """Open a branch after an event ("": before the first) and make it current."""
    request = pb.RevertToEventRequest(
        conversation_id=conversation_id,
        event_id=event_id,
        display_name=display_name,
        request_id=request_id or str(uuid.uuid4()),
    )
    call = safe_call(lambda stubs: stubs.events.RevertToEvent, request, timeout)
    return call.map(lambda answer: answer.branch)


def create_branch(
    conversation_id: str,
    event_id: str = "",
    *,
    parent_branch: int = 0,
    display_name: str = "",
    select: bool = False,
    request_id: str | None = None,
    timeout: float | None = None,
) -> Call[res.Branch]:
    """Open a branch after an event ("": before the first). `parent_branch` 0: the current one."""
    request = pb.CreateBranchRequest(
        conversation_id=conversation_id,
        event_id=event_id,
        parent_branch=parent_branch,
        display_name=display_name,
        select=select,
        request_id=request_id or str(uuid.uuid4()),
    )
    call = safe_call(lambda stubs: stubs.events.CreateBranch, request, timeout)
    return call.map(lambda answer: answer.branch)


def branches(
    conversation_id: str,
    *,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Branch]:
    """Branches of a conversation, oldest first; the trunk is number 1."""
    request = pb.ListBranchesRequest(conversation_id=conversation_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.events.ListBranches, request, timeout)
    return Pages(call, lambda answer: answer.branches, limit)


def select_branch(
    conversation_id: str, branch: int, *, timeout: float | None = None
) -> Call[res.Branch]:
    """Make a branch the one that reads and writes follow by default."""
    # Sent once: in between somebody else may have selected another.
    request = pb.SelectBranchRequest(conversation_id=conversation_id, branch=branch)
    call = single_call(lambda stubs: stubs.events.SelectBranch, request, timeout)
    return call.map(lambda answer: answer.branch)


def _add_key(event: pb.NewEvent) -> None:
    if not event.idempotency_key:
        event.idempotency_key = str(uuid.uuid4())
