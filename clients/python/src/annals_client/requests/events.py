"""Events of conversations."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, Pages, safe_call
from annals_client.values import enum_number, enum_numbers, timestamp


def append(
    conversation_id: str,
    events: pb.NewEvent | Sequence[pb.NewEvent],
    *,
    request_id: str | None = None,
    expected_last_seq: int | None = None,
    branch: int = 0,
    agent_id: str = "",
    session_id: str = "",
    timeout: float | None = None,
) -> Call[pb.AppendEventsResponse]:
    """Store 1–1,000 events, all or none. An empty `conversation_id` creates a conversation.

    `request_id` (UUID) is made up when absent and kept over retries: nothing is stored
    twice. `agent_id` and `session_id` are for a conversation created by this call. `branch` 0: the
    current one.
    """
    request = pb.AppendEventsRequest(
        conversation_id=conversation_id,
        events=[events] if isinstance(events, pb.NewEvent) else events,
        request_id=request_id or str(uuid.uuid4()),
        expected_last_seq=expected_last_seq,
        branch=branch,
        agent_id=agent_id,
        session_id=session_id,
    )
    return safe_call(lambda stubs: stubs.events.AppendEvents, request, timeout)


def get(
    event_id: str = "",
    *,
    conversation_id: str = "",
    seq: int = 0,
    timeout: float | None = None,
) -> Call[res.Event]:
    """Read one event, by id or by conversation and seq."""
    request = pb.GetEventRequest(event_id=event_id, conversation_id=conversation_id, seq=seq)
    call = safe_call(lambda stubs: stubs.events.GetEvent, request, timeout)
    return call.map(lambda answer: answer.event)


def batch_get(
    event_ids: Sequence[str], *, timeout: float | None = None
) -> Call[pb.BatchGetEventsResponse]:
    """Read up to 1,000 events in the order asked; ids not visible come back as missing."""
    request = pb.BatchGetEventsRequest(event_ids=event_ids)
    return safe_call(lambda stubs: stubs.events.BatchGetEvents, request, timeout)


def list_all(
    conversation_id: str,
    *,
    after_seq: int = 0,
    before_seq: int = 0,
    start_time: datetime | None = None,
    end_time: datetime | None = None,
    types: Sequence[int | str] = (),
    roles: Sequence[int | str] = (),
    tool_names: Sequence[str] = (),
    branch: int = 0,
    all_branches: bool = False,
    show_deleted: bool = False,
    order: int | str = "ascending",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Event]:
    """Events of a conversation that meet every condition, read page by page as needed.

    `types`: message, tool-call, tool-result, system, error. `order`: ascending or
    descending. `branch` 0: the current one. `timeout`: seconds per page.
    """
    request = pb.ListEventsRequest(
        conversation_id=conversation_id,
        after_seq=after_seq,
        before_seq=before_seq,
        start_time=timestamp(start_time),
        end_time=timestamp(end_time),
        types=enum_numbers(res.EventType, "EVENT_TYPE_", types),
        roles=enum_numbers(res.Role, "ROLE_", roles),
        tool_names=tool_names,
        branch=branch,
        all_branches=all_branches,
        show_deleted=show_deleted,
        order=enum_number(pb.SortOrder, "SORT_ORDER_", order),
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.events.ListEvents, request, timeout)
    return Pages(call, lambda answer: answer.events, limit)
