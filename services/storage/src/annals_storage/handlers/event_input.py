"""Events of requests to events of the domain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol
from uuid import UUID

from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as pb
from annals_common.errors import FieldInvalidError, LimitExceededError
from annals_common.ids import uuid7
from annals_common.settings import MEBIBYTE
from annals_common.validation import (
    bounded,
    enum,
    json_text,
    long_text,
    optional_uuid,
    require_text,
    struct,
    text,
    timestamp,
)
from annals_storage.domain.events import EventBody, EventStatus, EventType, NewEvent, Usage
from annals_storage.handlers.enums import EVENT_STATUSES, ROLES

MAX_EVENTS = 1_000
LARGE_REQUEST_BYTES = 64 * 1024
"""Counting the tokens of more than this would hold up other calls: a thread does it."""
MAX_CONTENT_BYTES = MEBIBYTE
MAX_METADATA_BYTES = 64 * 1024
MAX_ERROR_BYTES = 64 * 1024
MAX_ID_CHARS = 256
MAX_NAME_CHARS = 200
MAX_TOKENS = 2**53


class CountsTokens(Protocol):
    """Counts the tokens of texts."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""


def new_events(events: Sequence[event_pb.NewEvent], counter: CountsTokens) -> tuple[NewEvent, ...]:
    """Return validated events with ids, hashes and token counts."""
    if not events:
        raise FieldInvalidError("events", f"is required: 1–{MAX_EVENTS:,} events")
    if len(events) > MAX_EVENTS:
        raise LimitExceededError("events", limit=MAX_EVENTS, actual=len(events), unit="items")
    _refuse_duplicates(events)
    bodies = [event_body(event, f"events[{i}]") for i, event in enumerate(events)]
    counts = counter.count([body.words() for body in bodies])
    return tuple(
        _new_event(event, body, count, f"events[{i}]")
        for i, (event, body, count) in enumerate(zip(events, bodies, counts, strict=True))
    )


def new_event(event: event_pb.NewEvent, counter: CountsTokens) -> NewEvent:
    """Return the validated event of a call that takes one, as its field `event`."""
    body = event_body(event, "event")
    [token_count] = counter.count([body.words()])
    return _new_event(event, body, token_count, "event")


def _refuse_duplicates(events: Sequence[event_pb.NewEvent]) -> None:
    for name in ("event_id", "idempotency_key"):
        seen: set[str] = set()
        for i, event in enumerate(events):
            value = getattr(event, name)
            if value and value in seen:
                raise FieldInvalidError(f"events[{i}].{name}", "is used twice in this call", value)
            seen.add(value)


def event_body(event: event_pb.NewEvent, path: str) -> EventBody:
    """Return the validated body."""
    kind = event.WhichOneof("body")
    if kind is None:
        options = ", ".join(_BODIES)
        raise FieldInvalidError(f"{path}.body", f"is required: one of {options}")
    return _BODIES[kind](getattr(event, kind), f"{path}.{kind}")


def _message(body: pb.MessageBody, path: str) -> EventBody:
    return EventBody(
        type=EventType.MESSAGE,
        role=enum(body.role, ROLES, f"{path}.role"),
        content=long_text(body.content, f"{path}.content", max_bytes=MAX_CONTENT_BYTES),
        author_name=text(body.author_name, f"{path}.author_name", max_chars=MAX_NAME_CHARS) or None,
    )


def _tool_call(body: pb.ToolCallBody, path: str) -> EventBody:
    return EventBody(
        type=EventType.TOOL_CALL,
        tool_call_id=require_text(
            body.tool_call_id, f"{path}.tool_call_id", max_chars=MAX_ID_CHARS
        ),
        tool_name=require_text(body.tool_name, f"{path}.tool_name", max_chars=MAX_ID_CHARS),
        tool_input=json_text(
            body.input_json or "{}", f"{path}.input_json", max_bytes=MAX_CONTENT_BYTES
        ),
    )


def _tool_result(body: pb.ToolResultBody, path: str) -> EventBody:
    return EventBody(
        type=EventType.TOOL_RESULT,
        tool_call_id=require_text(
            body.tool_call_id, f"{path}.tool_call_id", max_chars=MAX_ID_CHARS
        ),
        tool_name=text(body.tool_name, f"{path}.tool_name", max_chars=MAX_ID_CHARS) or None,
        tool_result=long_text(body.result, f"{path}.result", max_bytes=MAX_CONTENT_BYTES),
        is_error=body.is_error,
    )


def _system(body: pb.SystemBody, path: str) -> EventBody:
    content = long_text(body.content, f"{path}.content", max_bytes=MAX_CONTENT_BYTES)
    return EventBody(type=EventType.SYSTEM, content=content)


def _error(body: pb.ErrorBody, path: str) -> EventBody:
    return EventBody(
        type=EventType.ERROR,
        error_type=require_text(body.error_type, f"{path}.error_type", max_chars=MAX_ID_CHARS),
        error_message=long_text(
            body.error_message, f"{path}.error_message", max_bytes=MAX_ERROR_BYTES
        ),
    )


_BODIES: dict[str, Callable[[Any, str], EventBody]] = {
    "message": _message,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "system": _system,
    "error": _error,
}


def _new_event(event: event_pb.NewEvent, body: EventBody, token_count: int, path: str) -> NewEvent:
    given_id = optional_uuid(event.event_id, f"{path}.event_id")
    content = event_content(event, path)
    return NewEvent(
        event_id=given_id or uuid7(),
        client_supplied_id=given_id is not None,
        body=body,
        payload_hash=_payload_hash(body, content),
        token_count=token_count,
        idempotency_key=idempotency_key(event, path),
        **content,
    )


def idempotency_key(event: event_pb.NewEvent, path: str) -> str | None:
    """Return the key, or None without one."""
    return text(event.idempotency_key, f"{path}.idempotency_key", max_chars=MAX_ID_CHARS) or None


def event_content(event: event_pb.NewEvent, path: str) -> dict[str, Any]:
    """Return what is said around the body, by field of the domain's NewEvent."""
    return {
        "model": text(event.model, f"{path}.model", max_chars=MAX_NAME_CHARS) or None,
        "provider_response_id": text(
            event.provider_response_id, f"{path}.provider_response_id", max_chars=MAX_ID_CHARS
        )
        or None,
        "usage": _usage(event, path),
        "parent_event_id": optional_uuid(event.parent_event_id, f"{path}.parent_event_id"),
        "metadata": struct(event.metadata, f"{path}.metadata", max_bytes=MAX_METADATA_BYTES),
        "event_time": timestamp(event.event_time, f"{path}.event_time")
        if event.HasField("event_time")
        else None,
        "status": enum(event.status, EVENT_STATUSES, f"{path}.status"),
    }


def _usage(event: event_pb.NewEvent, path: str) -> Usage | None:
    if not event.HasField("usage"):
        return None
    values = {name: getattr(event.usage, name) for name in Usage.__slots__}
    for name, value in values.items():
        bounded(value, f"{path}.usage.{name}", low=0, high=MAX_TOKENS)
    return Usage(**values)


def _payload_hash(body: EventBody, content: dict[str, Any]) -> bytes:
    """Hash what the writer said; ids and keys are not part of it.

    What was left empty is left out, so that a field added to events later does not turn the
    retry of an old append into another payload.
    """
    said = said_in(body) | {name: value for name, value in content.items() if value}
    if said["status"] is EventStatus.COMPLETE:
        del said["status"]
    return content_hash(said)


def said_in(body: EventBody) -> dict[str, Any]:
    """Return what a body says: its fields that are not empty."""
    return {name: value for name in EventBody.__slots__ if (value := getattr(body, name))}


def content_hash(said: dict[str, Any]) -> bytes:
    """Hash what a writer said."""
    encoded = json.dumps(said, sort_keys=True, default=_hashable)
    return hashlib.sha256(encoded.encode()).digest()[:16]


def _hashable(value: object) -> Any:
    return asdict(value) if isinstance(value, Usage) else str(value)


def request_hash(events: Sequence[NewEvent], *rest: UUID | str | int | None) -> bytes:
    """Hash a whole call, for its request_id."""
    digest = hashlib.sha256(json.dumps(rest, default=str).encode())
    for event in events:
        digest.update(event.payload_hash)
        digest.update(str(event.event_id if event.client_supplied_id else "").encode())
        digest.update((event.idempotency_key or "").encode())
    return digest.digest()[:16]
