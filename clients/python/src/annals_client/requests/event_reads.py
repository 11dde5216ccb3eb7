"""Events by what they belong to: a thread, a tool call, a period, their parts, their arrival."""

from __future__ import annotations

from collections.abc import Sequence

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, Pages, safe_call
from annals_client.values import enum_number, enum_numbers


def thread(
    event_id: str,
    *,
    depth: int = 0,
    direction: int | str = "both",
    limit: int = 0,
    timeout: float | None = None,
) -> Call[pb.GetThreadResponse]:
    """Follow the parent links of an event. `direction`: ancestors, descendants or both."""
    request = pb.GetThreadRequest(
        event_id=event_id,
        depth=depth,
        direction=enum_number(pb.ThreadDirection, "THREAD_DIRECTION_", direction),
        limit=limit,
    )
    return safe_call(lambda stubs: stubs.events.GetThread, request, timeout)


def tool_call(
    event_id: str = "",
    *,
    conversation_id: str = "",
    tool_call_id: str = "",
    timeout: float | None = None,
) -> Call[pb.ToolCall]:
    """A tool call with its result: by the event of either, or by the provider's id of the call."""
    request = pb.GetToolCallRequest(
        event_id=event_id, conversation_id=conversation_id, tool_call_id=tool_call_id
    )
    call = safe_call(lambda stubs: stubs.events.GetToolCall, request, timeout)
    return call.map(lambda answer: answer.tool_call)


def tool_calls(
    message_event_id: str, *, timeout: float | None = None
) -> Call[Sequence[pb.ToolCall]]:
    """The tool calls that a message triggered, with their results, by seq."""
    request = pb.ListToolCallsRequest(message_event_id=message_event_id)
    call = safe_call(lambda stubs: stubs.events.ListToolCalls, request, timeout)
    return call.map(lambda answer: list(answer.tool_calls))


def period(
    conversation_id: str,
    when: str,
    *,
    timezone: str = "",
    types: Sequence[int | str] = (),
    order: int | str = "ascending",
    branch: int = 0,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Event]:
    """Events of a period, such as today, this_week, 2025-10 or 2025-10-01/2025-10-15.

    `timezone`: an IANA name; "" is UTC. `branch` 0: the current one.
    """
    request = pb.ListPeriodRequest(
        conversation_id=conversation_id,
        period=when,
        timezone=timezone,
        types=enum_numbers(res.EventType, "EVENT_TYPE_", types),
        order=enum_number(pb.SortOrder, "SORT_ORDER_", order),
        branch=branch,
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.events.ListPeriod, request, timeout)
    return Pages(call, lambda answer: answer.events, limit)


def chunks(
    event_id: str,
    *,
    chunk_tokens: int = 0,
    overlap_tokens: int | None = None,
    chunk_index: int = 0,
    limit: int = 0,
    timeout: float | None = None,
) -> Call[pb.GetEventChunksResponse]:
    """An event cut into parts of `chunk_tokens` (0: 4,000) for presentation."""
    request = pb.GetEventChunksRequest(
        event_id=event_id,
        chunk_tokens=chunk_tokens,
        overlap_tokens=overlap_tokens,
        chunk_index=chunk_index,
        limit=limit,
    )
    return safe_call(lambda stubs: stubs.events.GetEventChunks, request, timeout)
