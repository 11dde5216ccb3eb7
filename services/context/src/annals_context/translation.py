"""Events of storage's API to events of the domain and back: for handlers and clients alike."""

from __future__ import annotations

from datetime import UTC
from typing import Any, cast

from google.protobuf import json_format

from annals.storage.v1 import event_service_pb2, resources_pb2
from annals_context.domain.events import Event, EventStatus, EventType, Role

EVENT_TYPES: dict[int, EventType] = {
    resources_pb2.EVENT_TYPE_MESSAGE: EventType.MESSAGE,
    resources_pb2.EVENT_TYPE_TOOL_CALL: EventType.TOOL_CALL,
    resources_pb2.EVENT_TYPE_TOOL_RESULT: EventType.TOOL_RESULT,
    resources_pb2.EVENT_TYPE_SYSTEM: EventType.SYSTEM,
    resources_pb2.EVENT_TYPE_ERROR: EventType.ERROR,
}
ROLES: dict[int, Role] = {
    resources_pb2.ROLE_USER: Role.USER,
    resources_pb2.ROLE_ASSISTANT: Role.ASSISTANT,
    resources_pb2.ROLE_SYSTEM: Role.SYSTEM,
    resources_pb2.ROLE_TOOL: Role.TOOL,
}
EVENT_STATUSES: dict[int, EventStatus] = {
    resources_pb2.EVENT_STATUS_PENDING: EventStatus.PENDING,
    resources_pb2.EVENT_STATUS_COMPLETE: EventStatus.COMPLETE,
    resources_pb2.EVENT_STATUS_FAILED: EventStatus.FAILED,
    resources_pb2.EVENT_STATUS_INCOMPLETE: EventStatus.INCOMPLETE,
}
EVENT_TYPE_NUMBERS: dict[EventType, Any] = {value: key for key, value in EVENT_TYPES.items()}
EVENT_STATUS_NUMBERS: dict[EventStatus, Any] = {value: key for key, value in EVENT_STATUSES.items()}
ROLE_NUMBERS: dict[Role, Any] = {value: key for key, value in ROLES.items()}
BODY_TYPES = {
    "message": EventType.MESSAGE,
    "tool_call": EventType.TOOL_CALL,
    "tool_result": EventType.TOOL_RESULT,
    "system": EventType.SYSTEM,
    "error": EventType.ERROR,
}
"""Member of the oneof `body` to type."""


def event_from(message: resources_pb2.Event) -> Event:
    """Return the domain's event. An event without a body is refused before this."""
    kind = message.WhichOneof("body") or "message"
    return Event(
        type=BODY_TYPES[kind],
        event_id=message.event_id,
        conversation_id=message.conversation_id,
        seq=message.seq,
        status=EVENT_STATUSES.get(message.status, EventStatus.COMPLETE),
        model=message.model,
        provider_response_id=message.provider_response_id,
        event_time=message.event_time.ToDatetime(tzinfo=UTC)
        if message.HasField("event_time")
        else None,
        metadata=json_format.MessageToDict(message.metadata) if message.metadata.fields else {},
        **_body(message, kind),
    )


def _body(message: resources_pb2.Event, kind: str) -> dict[str, Any]:
    body = getattr(message, kind)
    match kind:
        case "message":
            return {
                "role": ROLES.get(body.role),
                "content": body.content,
                "author_name": body.author_name,
            }
        case "tool_call":
            return {
                "tool_call_id": body.tool_call_id,
                "tool_name": body.tool_name,
                "tool_input": body.input_json,
            }
        case "tool_result":
            return {
                "tool_call_id": body.tool_call_id,
                "tool_name": body.tool_name,
                "tool_result": body.result,
                "is_error": body.is_error,
            }
        case "error":
            return {"error_type": body.error_type, "error_message": body.error_message}
        case _:
            return {"content": body.content}


def new_event_message(event: Event) -> event_service_pb2.NewEvent:
    """Return an event as AppendEvents takes it."""
    message = event_service_pb2.NewEvent(
        model=event.model, provider_response_id=event.provider_response_id, **_body_message(event)
    )
    _add_shared(message, event)
    return message


def stored_event_message(event: Event) -> resources_pb2.Event:
    """Return an event as far as the domain knows it."""
    message = resources_pb2.Event(
        event_id=event.event_id,
        conversation_id=event.conversation_id,
        seq=event.seq,
        type=EVENT_TYPE_NUMBERS[event.type],
        model=event.model,
        provider_response_id=event.provider_response_id,
        status=EVENT_STATUS_NUMBERS[event.status],
        **_body_message(event),
    )
    _add_shared(message, event)
    return message


def _add_shared(message: event_service_pb2.NewEvent | resources_pb2.Event, event: Event) -> None:
    if event.metadata:
        message.metadata.update(cast("dict[str, Any]", dict(event.metadata)))
    if event.event_time:
        message.event_time.FromDatetime(event.event_time)


def _body_message(event: Event) -> dict[str, Any]:
    match event.type:
        case EventType.MESSAGE:
            role = ROLE_NUMBERS[event.role] if event.role else resources_pb2.ROLE_UNSPECIFIED
            body: Any = resources_pb2.MessageBody(
                role=role, content=event.content, author_name=event.author_name
            )
        case EventType.TOOL_CALL:
            body = resources_pb2.ToolCallBody(
                tool_call_id=event.tool_call_id,
                tool_name=event.tool_name,
                input_json=event.tool_input,
            )
        case EventType.TOOL_RESULT:
            body = resources_pb2.ToolResultBody(
                tool_call_id=event.tool_call_id,
                tool_name=event.tool_name,
                result=event.tool_result,
                is_error=event.is_error,
            )
        case EventType.SYSTEM:
            body = resources_pb2.SystemBody(content=event.content)
        case EventType.ERROR:
            body = resources_pb2.ErrorBody(
                error_type=event.error_type, error_message=event.error_message
            )
    return {event.type.value: body}
