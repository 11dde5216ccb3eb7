"""Whether an event of a file and its observations are what a history leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from annals_common.errors import FieldInvalidError
from annals_common.validation import json_text
from annals_storage.domain.changing import ObservationKind
from annals_storage.domain.events import EventBody, EventStatus, EventType
from annals_storage.domain.transfer_fields import LineInvalidError
from annals_storage.domain.transfer_lines import EVENT_FIELDS, MAX_CONTENT_BYTES, Values

_REQUIRED = {
    EventType.MESSAGE: ("role", "content"),
    EventType.TOOL_CALL: ("tool_call_id", "tool_name", "tool_input"),
    EventType.TOOL_RESULT: ("tool_call_id", "tool_result"),
    EventType.SYSTEM: ("content",),
    EventType.ERROR: ("error_type", "error_message"),
}
_ALLOWED = {
    EventType.MESSAGE: {"role", "content", "author_name"},
    EventType.TOOL_CALL: {"tool_call_id", "tool_name", "tool_input"},
    EventType.TOOL_RESULT: {"tool_call_id", "tool_name", "tool_result"},
    EventType.SYSTEM: {"content"},
    EventType.ERROR: {"error_type", "error_message"},
}
_BODY = frozenset().union(*_ALLOWED.values())
_PLACE = frozenset(
    ("event_id", "seq", "branch", "type", "is_error", "status", "version", "token_count",
     "event_time", "created_at", "deleted_at", "erased_at")
)  # fmt: skip
"""What is left of an erased event."""
_ERASED = {"is_error": False, "status": EventStatus.COMPLETE, "token_count": 0}
_UNSAID = frozenset((ObservationKind.DELETE, ObservationKind.RESTORE))
"""Nobody says anything by them: there is nothing to hash."""
CountTokens = Callable[[str], int]
"""Counts the tokens of a text in o200k_base."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the event of a line names: each must stand before it in the conversation."""

    line: int
    seq: int
    parent_event_id: str | None = None
    tool_call_id: str | None = None


def check_event(values: Values, count_tokens: CountTokens) -> None:
    """Judge the members that depend on the type. An erased event has none of them."""
    if "erased_at" in values:
        _check_erased(values)
        return
    kind = EventType(values["type"])
    present = {name for name in _BODY if name in values}
    for name in _REQUIRED[kind]:
        if name not in present:
            raise LineInvalidError(f"{name} is missing in a {kind}")
    if wrong := present - _ALLOWED[kind]:
        raise LineInvalidError(f"{min(wrong)} does not belong to a {kind}")
    if values["is_error"] and kind is not EventType.TOOL_RESULT:
        raise LineInvalidError(f"is_error must be false in a {kind}")
    words = EventBody(kind, **{name: values[name] for name in present}).words()
    if values["token_count"] != (counted := count_tokens(words)):
        raise LineInvalidError(f"token_count must be {counted}: its words have so many")


def _check_erased(values: Values) -> None:
    known = {field.name for field in EVENT_FIELDS} - _PLACE
    if present := known & set(values):
        raise LineInvalidError(f"{min(present)}: an erased event has no words")
    for name, left in _ERASED.items():
        if values[name] != left:
            raise LineInvalidError(f"{name} must be {left} in an erased event")


def check_tool_input(values: Values) -> None:
    """Judge the input of a tool call, of an event or a former version of one.

    How deep it may be nested follows from the stack: callers keep theirs as shallow as that of
    an append, or what could be stored could not be imported.
    """
    for version in (values, values.get("payload", {})):
        try:
            if "tool_input" in version:
                json_text(version["tool_input"], "tool_input", max_bytes=MAX_CONTENT_BYTES)
        except FieldInvalidError as error:
            raise LineInvalidError(f"tool_input {error.violations[0].description}") from error


def check_observation(event: Values, values: Values, count_tokens: CountTokens) -> None:
    """Judge an observation, its version known to be one of the event's."""
    payload = values.get("payload")
    if values["version"] == event["version"] and payload is not None:
        raise LineInvalidError("payload: what an event is now stands in the event itself")
    if values["version"] < event["version"]:
        if payload is None:
            raise LineInvalidError("payload is missing: what the event was at this version")
        _check_payload(event, values, payload)
        check_event(payload, count_tokens)
    kind = ObservationKind(values["kind"])
    if values["version"] == 1 and kind is not ObservationKind.STORE:
        raise LineInvalidError(f"kind must be {ObservationKind.STORE} at version 1")
    if (kind is ObservationKind.DELETE) != ("deleted_at" in (payload or event)):
        raise LineInvalidError(
            f"kind must be {ObservationKind.DELETE} where the event has deleted_at at this "
            "version, and only there"
        )
    _check_hash(event, values, kind)


def _check_payload(event: Values, values: Values, payload: Values) -> None:
    for name in ("event_id", "seq", "branch", "type"):
        if payload[name] != event[name]:
            raise LineInvalidError(f"payload: {name} must be that of the event")
    if payload["version"] != values["version"]:
        raise LineInvalidError("payload: version must be that of the observation")
    if "erased_at" in payload:
        raise LineInvalidError("payload: erased_at must be left out: erasing leaves no history")


def _check_hash(event: Values, values: Values, kind: ObservationKind) -> None:
    is_empty = not values["payload_hash"]
    if kind in _UNSAID and not is_empty:
        raise LineInvalidError(f"payload_hash must be empty where kind is {kind}")
    # A fork copies the hash of the version it copies: that of a restored event is empty.
    is_copy = values["version"] == 1 and "origin_event_id" in event
    if is_empty and kind not in _UNSAID and not is_copy:
        raise LineInvalidError(f"payload_hash must not be empty where kind is {kind}")
