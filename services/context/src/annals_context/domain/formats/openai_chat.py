"""Canonical events to the `messages` of OpenAI's chat completions.

Choices where the format has no place for an event:

- An assistant's message and the tool calls that follow it in one turn become one message.
- Results stand right after the message that called, whatever came between. A call without a
  result gets a placeholder; a result without a call becomes a message of the user. Both are
  reported.
- Notes and errors of the application become messages of role `system`.
- A failed result begins with "Error: ". Empty arguments are written `{}`.
- `name` takes names without white space and `<|\\/>`, up to 64 characters; any other name is
  put before the text as "Name: ".
- Images of a user that were read from another provider stand behind the words.
- Calls of one message that share an id get distinct ones, and their results with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import extras
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.parts import MediaPart, parts_of
from annals_context.domain.formats.rendering import (
    MISSING_RESULT,
    Rendered,
    distinct,
    lone_result_text,
    pairing_repairs,
    result_text,
)
from annals_context.domain.pairing import Unit, group_units

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
Message = dict[str, object]


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One message and the events whose words it holds; none for a placeholder."""

    message: Message
    events: tuple[Event, ...]


def render(events: Sequence[Event]) -> Rendered:
    """Return the JSON array of messages for events in order, as `parse` reads it back."""
    units = group_units(events)
    messages = [
        rendered.message
        for unit in units
        for rendered in unit_messages(unit, extras.ExactRestorer())
    ]
    repairs = tuple(repair for unit in units for repair in pairing_repairs(unit))
    return Rendered(dumps(messages), repairs)


def unit_messages(unit: Unit, restorer: extras.Restorer) -> list[RenderedMessage]:
    """Return the messages of one unit; `restorer` adds what the metadata kept."""
    if unit.calls:
        return _call_messages(unit, restorer)
    if unit.lead is None:
        return []
    message = _lead_message(unit.lead)
    restorer.message(message, unit.lead)
    _show_images(message, unit.lead)
    return [RenderedMessage(message, (unit.lead,))]


def named_message(role: str, content: str, author_name: str) -> Message:
    """Return a message; a name the format refuses goes into its text."""
    if not author_name:
        return {"role": role, "content": content}
    if _NAME.fullmatch(author_name):
        return {"role": role, "name": author_name, "content": content}
    return {"role": role, "content": f"{author_name}: {content}"}


def speaker_role(event: Event) -> str:
    """Return the role an event that is no call speaks in."""
    match event.type:
        case EventType.SYSTEM | EventType.ERROR:
            return Role.SYSTEM.value
        case EventType.MESSAGE if event.role and event.role is not Role.TOOL:
            return event.role.value
        case _:
            return Role.USER.value


def _lead_message(event: Event) -> Message:
    role = speaker_role(event)
    match event.type:
        case EventType.TOOL_RESULT:
            return {"role": role, "content": lone_result_text(event)}
        case EventType.ERROR:
            return {"role": role, "content": f"{event.error_type}: {event.error_message}"}
        case EventType.MESSAGE if event.role is Role.TOOL:
            return named_message(role, f"[tool]: {event.content}", event.author_name)
        case _:
            return named_message(role, event.content, event.author_name)


def _show_images(message: Message, event: Event) -> None:
    """Put images that came from another provider behind the words of the user."""
    words = message["content"]
    if event.role is not Role.USER or not isinstance(words, str):
        return
    media = [part for part in parts_of(event) if isinstance(part, MediaPart) and part.is_image]
    if media:
        images = [{"type": "image_url", "image_url": {"url": part.data_url}} for part in media]
        message["content"] = [{"type": "text", "text": words}, *images]


def _call_messages(unit: Unit, restorer: extras.Restorer) -> list[RenderedMessage]:
    ids = distinct([restorer.call_id(call) for call in unit.calls])
    caller = (unit.lead, *unit.calls) if unit.lead else unit.calls
    rendered = [RenderedMessage(_assistant_message(unit, ids, restorer), caller)]
    for index, result in unit.results:
        message = _tool_message(ids[index], result_text(result))
        restorer.message(message, result)
        rendered.append(RenderedMessage(message, (result,)))
    missing = [RenderedMessage(_tool_message(ids[i], MISSING_RESULT), ()) for i in unit.unanswered]
    return rendered + missing


def _assistant_message(unit: Unit, ids: list[str], restorer: extras.Restorer) -> Message:
    message: Message = {"role": Role.ASSISTANT.value, "content": None}
    if unit.lead:
        message = _lead_message(unit.lead)
    entries = [_call_entry(call, id_) for call, id_ in zip(unit.calls, ids, strict=True)]
    for entry, call in zip(entries, unit.calls, strict=True):
        restorer.call(entry, call)
    restorer.message(message, unit.lead or unit.calls[0])
    message["tool_calls"] = entries
    return message


def _call_entry(call: Event, tool_call_id: str) -> Message:
    function = {"name": call.tool_name, "arguments": call.tool_input or "{}"}
    return {"id": tool_call_id, "type": "function", "function": function}


def _tool_message(tool_call_id: str, content: str) -> Message:
    return {"role": Role.TOOL.value, "tool_call_id": tool_call_id, "content": content}
