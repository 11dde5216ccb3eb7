"""EventService: threads and tool calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import ResourceNotFoundError
from annals_common.validation import (
    bounded,
    check_response_size,
    enum,
    optional_uuid,
    require_text,
    require_uuid,
)
from annals_storage.domain.threads import Thread, ThreadDirection, ThreadQuery, ToolCall
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.event_input import MAX_ID_CHARS
from annals_storage.handlers.output import event_message
from annals_storage.ports.events import ThreadStore

MAX_LINKS, DEFAULT_LINKS = 1_000, 50
MAX_EVENTS, DEFAULT_EVENTS = 1_000, 100
DIRECTIONS: dict[int, ThreadDirection] = {
    pb.THREAD_DIRECTION_UNSPECIFIED: ThreadDirection.BOTH,
    pb.THREAD_DIRECTION_ANCESTORS: ThreadDirection.ANCESTORS,
    pb.THREAD_DIRECTION_DESCENDANTS: ThreadDirection.DESCENDANTS,
    pb.THREAD_DIRECTION_BOTH: ThreadDirection.BOTH,
}


class ThreadHandler:
    """Translates."""

    def __init__(self, threads: ThreadStore) -> None:
        self._threads = threads

    async def GetThread(self, request: pb.GetThreadRequest, context: Any) -> pb.GetThreadResponse:
        tenant_id = data_tenant("GetThread")
        response = _thread_message(await self._threads.thread(tenant_id, _thread_query(request)))
        check_response_size(response, "limit")
        return response

    async def GetToolCall(
        self, request: pb.GetToolCallRequest, context: Any
    ) -> pb.GetToolCallResponse:
        tenant_id = data_tenant("GetToolCall")
        event_id = optional_uuid(request.event_id, "event_id")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        if event_id is None:
            found = await self._by_tool_call_id(request, tenant_id)
        else:
            found = await self._threads.tool_call(tenant_id, event_id)
            if conversation_id not in (None, found.call.conversation_id):
                raise ResourceNotFoundError("event", str(event_id))
        return pb.GetToolCallResponse(tool_call=_tool_call_message(found))

    async def _by_tool_call_id(self, request: pb.GetToolCallRequest, tenant_id: UUID) -> ToolCall:
        conversation_id = require_uuid(
            request.conversation_id, "event_id (or conversation_id and tool_call_id)"
        )
        tool_call_id = require_text(request.tool_call_id, "tool_call_id", max_chars=MAX_ID_CHARS)
        return await self._threads.tool_call_by_id(tenant_id, conversation_id, tool_call_id)

    async def ListToolCalls(
        self, request: pb.ListToolCallsRequest, context: Any
    ) -> pb.ListToolCallsResponse:
        tenant_id = data_tenant("ListToolCalls")
        message_id = require_uuid(request.message_event_id, "message_event_id")
        found = await self._threads.tool_calls(tenant_id, message_id)
        response = pb.ListToolCallsResponse(tool_calls=map(_tool_call_message, found))
        check_response_size(response, "message_event_id")
        return response


def _thread_query(request: pb.GetThreadRequest) -> ThreadQuery:
    bounded(request.depth, "depth", low=0, high=MAX_LINKS)
    bounded(request.limit, "limit", low=0, high=MAX_EVENTS)
    return ThreadQuery(
        event_id=require_uuid(request.event_id, "event_id"),
        direction=enum(request.direction, DIRECTIONS, "direction"),
        depth=request.depth or DEFAULT_LINKS,
        limit=request.limit or DEFAULT_EVENTS,
    )


def _thread_message(thread: Thread) -> pb.GetThreadResponse:
    return pb.GetThreadResponse(
        events=[
            pb.ThreadEvent(event=event_message(event), distance=distance)
            for event, distance in zip(thread.events, thread.distances, strict=True)
        ],
        truncated=thread.truncated,
    )


def _tool_call_message(found: ToolCall) -> pb.ToolCall:
    return pb.ToolCall(
        call=event_message(found.call),
        result=event_message(found.result) if found.result else None,
        message_event_id=str(found.message_id or ""),
    )
