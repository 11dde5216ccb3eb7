"""Canonical events to the `input` items of OpenAI's responses.

The payload is the array of items. Choices as for OpenAI's chat messages (see `openai_chat`), and:

- What the assistant says and calls are items of their own; results follow the calls of their turn.
- Ids of calls are unique in the payload.
- A speaker's name is put before the words as "Name: ".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import provider_metadata
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.openai_chat import speaker_role
from annals_context.domain.formats.parts import (
    MediaPart,
    Part,
    TextPart,
    UnknownPart,
    joined,
    named_parts,
    openai_part,
)
from annals_context.domain.formats.rendering import (
    MISSING_RESULT,
    Rendered,
    call_ids,
    lone_result_text,
    pairing_repairs,
    result_text,
)
from annals_context.domain.model import Repair
from annals_context.domain.pairing import Unit, group_units

_KEY = provider_metadata.OPENAI_RESPONSES
_PROTECTED = frozenset({"type", "role", "content", "call_id", "name", "arguments", "output"})
Item = dict[str, object]


def render(events: Sequence[Event]) -> Rendered:
    """Return the JSON array of items for events in order."""
    return write(group_units(events))


def write(units: Sequence[Unit]) -> Rendered:
    """Return the JSON array of items for units in order."""
    writer = written(units)
    return Rendered(dumps(writer.items), tuple(writer.repairs))


def written(units: Sequence[Unit]) -> Writer:
    """Return the items of units."""
    writer = Writer(call_ids([call for unit in units for call in unit.calls]))
    for unit in units:
        writer.add(unit)
    return writer


@dataclass(slots=True)
class Writer:
    """Items so far, and what was mended."""

    ids: Mapping[int, str]
    items: list[Item] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)

    def add(self, unit: Unit) -> None:
        """Write a unit."""
        self.repairs += pairing_repairs(unit)
        if unit.lead:
            self.items += [*_kept(unit.lead, "before"), _message(unit.lead)]
        for call in unit.calls:
            self.items += [*_kept(call, "before"), self._call(call)]
        for index, result in unit.results:
            self.items.append(self._output(unit.calls[index], result))
        for index in unit.unanswered:
            self.items.append(self._output(unit.calls[index], None))

    def _call(self, call: Event) -> Item:
        item: Item = {"type": "function_call", "call_id": self.ids[id(call)]}
        item |= {"name": call.tool_name, "arguments": call.tool_input or "{}"}
        return item | _members(call)

    def _output(self, call: Event, result: Event | None) -> Item:
        item: Item = {"type": "function_call_output", "call_id": self.ids[id(call)]}
        if result is None:
            return item | {"output": MISSING_RESULT}
        kept = _kept(result, "content")
        words = joined([openai_part(part) for part in kept])
        output = kept if kept and words == result.tool_result else result_text(result)
        return item | {"output": output} | _members(result)


def _message(event: Event) -> Item:
    role = speaker_role(event)
    if provider_metadata.load(event, _KEY).get("role") == "developer" and role == "system":
        role = "developer"
    return {"type": "message", "role": role, "content": _content(event)} | _members(event)


def _content(event: Event) -> object:
    match event.type:
        case EventType.TOOL_RESULT:
            return lone_result_text(event)
        case EventType.ERROR:
            return f"{event.error_type}: {event.error_message}"
        case EventType.MESSAGE if event.role is Role.TOOL:
            return f"[tool]: {event.content}"
    kept = _kept(event, "content")
    if kept and joined([openai_part(part) for part in kept]) == event.content:
        return kept
    return _parts(event)


def _parts(event: Event) -> object:
    parts = named_parts(event)
    if event.role is not Role.USER or all(isinstance(part, TextPart) for part in parts):
        return "\n".join(_words(part) for part in parts)
    return [_part(part) for part in parts]


def _part(part: Part) -> Item:
    match part:
        case MediaPart() if part.is_image:
            return {"type": "input_image", "image_url": part.data_url, "detail": "auto"}
        case MediaPart(url=url) if url:
            return {"type": "input_file", "file_url": url}
        case _:
            return {"type": "input_text", "text": _words(part)}


def _words(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case MediaPart():
            return f"[{part.media_type or 'image'} left out]"
        case UnknownPart():
            return part.words


def _kept(event: Event, member: str) -> list[Item]:
    return provider_metadata.load_list(event, _KEY, member)


def _members(event: Event) -> Item:
    """Return members of an item that have no place in the event, such as its `id`."""
    return provider_metadata.members(event, _KEY, "item", _PROTECTED)
