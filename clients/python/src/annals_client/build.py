"""Builds events: `user("Hello")`, `tool_call("call_1", "search", {"q": "flights"})`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.values import enum_number, json_text, struct, timestamp


class EventFields(TypedDict, total=False):
    """What every event may carry beside its body; see `NewEvent` for the limits."""

    event_id: str
    idempotency_key: str
    model: str
    provider_response_id: str
    usage: res.Usage
    parent_event_id: str
    metadata: Mapping[str, Any]
    event_time: datetime
    status: int | str


def message(
    role: int | str, content: str, *, author_name: str = "", **fields: Unpack[EventFields]
) -> pb.NewEvent:
    """Somebody says something. `role`: user, assistant, system or tool."""
    if not isinstance(content, str):
        raise TypeError(f"content must be a str, not {type(content).__name__}")
    number = enum_number(res.Role, "ROLE_", role)
    body = res.MessageBody(role=number, content=content, author_name=author_name)
    return pb.NewEvent(message=body, **_common(fields))


def user(content: str, *, author_name: str = "", **fields: Unpack[EventFields]) -> pb.NewEvent:
    """The end user says something."""
    return message(res.ROLE_USER, content, author_name=author_name, **fields)


def assistant(content: str, *, author_name: str = "", **fields: Unpack[EventFields]) -> pb.NewEvent:
    """The model says something."""
    return message(res.ROLE_ASSISTANT, content, author_name=author_name, **fields)


def tool_call(
    tool_call_id: str, tool_name: str, tool_input: object = "", **fields: Unpack[EventFields]
) -> pb.NewEvent:
    """The model calls a tool. `tool_input`: JSON text, or a value to write as JSON."""
    body = res.ToolCallBody(
        tool_call_id=tool_call_id, tool_name=tool_name, input_json=json_text(tool_input)
    )
    return pb.NewEvent(tool_call=body, **_common(fields))


def tool_result(
    tool_call_id: str,
    result: object,
    *,
    tool_name: str = "",
    is_error: bool = False,
    **fields: Unpack[EventFields],
) -> pb.NewEvent:
    """A tool answers. `result`: any text, or a value to write as JSON."""
    body = res.ToolResultBody(
        tool_call_id=tool_call_id,
        tool_name=tool_name,
        result=json_text(result),
        is_error=is_error,
    )
    return pb.NewEvent(tool_result=body, **_common(fields))


def system(content: str, **fields: Unpack[EventFields]) -> pb.NewEvent:
    """The application notes something. Instructions to a model: `message("system", …)`."""
    return pb.NewEvent(system=res.SystemBody(content=content), **_common(fields))


def error(error_type: str, error_message: str = "", **fields: Unpack[EventFields]) -> pb.NewEvent:
    """Something failed. `error_type` is machine-readable, such as "rate_limit"."""
    body = res.ErrorBody(error_type=error_type, error_message=error_message)
    return pb.NewEvent(error=body, **_common(fields))


def _common(fields: EventFields) -> dict[str, Any]:
    plain: dict[str, Any] = dict(fields)
    plain["metadata"] = struct(fields.get("metadata"))
    plain["event_time"] = timestamp(fields.get("event_time"))
    if "status" in fields:
        plain["status"] = enum_number(res.EventStatus, "EVENT_STATUS_", fields["status"])
    return plain
