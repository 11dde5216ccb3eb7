"""Canonical events to Anthropic's messages.

The payload is an object with `messages` and, where there are system prompts, `system`: both go into
a request as they are. Choices where the format has no place for an event:

- System prompts before the first turn are `system`. Later ones, notes and errors of the application
  are words of the user, marked as such: "[system]: …".
- Turns alternate and the first one is the user's (see `turns`); a placeholder is reported as
  `user_message_missing`.
- Results stand first in the turn after the calls. A call without a result gets a failed one that
  says so. A result without a call becomes words of the user. Both are reported.
- Blank words are left out; a turn of nothing else is "(empty message)", reported as
  `message_empty`.
- Ids of calls take letters, digits, "_" and "-", are unique in the payload and have at most 64
  characters: others are written with these characters and a digest. Names of tools likewise, up
  to 128 characters; a changed one is reported as `tool_name_changed`.
- Arguments must be an object: anything else becomes the member `value` of one.
- A speaker's name is put before the words as "Name: ".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals_context.domain.events import Event, EventType
from annals_context.domain.formats import provider_metadata
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.parts import (
    MediaPart,
    Part,
    TextPart,
    UnknownPart,
    anthropic_part,
    joined,
    named_parts,
)
from annals_context.domain.formats.rendering import (
    MISSING_RESULT,
    Rendered,
    arguments_object,
    distinct,
    plain_name,
)
from annals_context.domain.formats.turns import EMPTY_TEXT, Dialogue, Said, Turn, dialogue
from annals_context.domain.model import Repair

MAX_CALL_ID_CHARS = 56
"""Of 64, so that repeated ones can be numbered."""
MAX_TOOL_NAME_CHARS = 128
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_KEY = provider_metadata.ANTHROPIC_MESSAGES
Block = dict[str, object]


def render(events: Sequence[Event]) -> Rendered:
    """Return the object with `system` and `messages` for events in order."""
    return _Writer(dialogue(events)).rendered()


@dataclass(slots=True)
class _Writer:
    source: Dialogue
    repairs: list[Repair] = field(default_factory=list)
    ids: Mapping[int, str] = field(default_factory=dict)

    def rendered(self) -> Rendered:
        self.repairs.extend(self.source.repairs)
        self.ids = _call_ids(self.source.turns)
        payload: Block = {}
        system = [block for event in self.source.prompts for block in _content(event)]
        if system:
            payload["system"] = _shortest(system)
        payload["messages"] = [self._message(turn) for turn in self.source.turns]
        return Rendered(dumps(payload), tuple(self.repairs))

    def _message(self, turn: Turn) -> Block:
        blocks = [block for said in turn.said for block in self._blocks(said)]
        if not blocks:
            blocks = [_text(EMPTY_TEXT)]
            first = turn.said[0].event
            self.repairs.append(Repair("message_empty", "", first.event_id if first else ""))
        return {"role": "assistant" if turn.is_assistant else "user", "content": _shortest(blocks)}

    def _blocks(self, said: Said) -> list[Block]:
        if said.call is not None:
            return [self._result(said.call, said.event)]
        if said.text is not None:
            return [_text(said.text)] if said.text.strip() else []
        if said.event is None:
            return []
        if said.event.type is EventType.TOOL_CALL:
            return [*_kept(said.event, "before"), self._call(said.event)]
        return _content(said.event)

    def _call(self, call: Event) -> Block:
        name = plain_name(call.tool_name, _UNSAFE, MAX_TOOL_NAME_CHARS)
        if name != call.tool_name:
            self.repairs.append(Repair("tool_name_changed", call.tool_call_id, call.event_id))
        block: Block = {"type": "tool_use", "id": self.ids[id(call)], "name": name}
        return block | {"input": arguments_object(call.tool_input)} | _members(call, "call")

    def _result(self, call: Event, result: Event | None) -> Block:
        block: Block = {"type": "tool_result", "tool_use_id": self.ids[id(call)]}
        if result is None:
            return block | {"content": MISSING_RESULT, "is_error": True}
        block["content"] = _result_content(result)
        if result.is_error:
            block["is_error"] = True
        return block | _members(result, "call")


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _content(event: Event) -> list[Block]:
    """Return the blocks of a message: as they were read, else as other providers' parts say."""
    kept = _kept(event, "content")
    if kept and joined([anthropic_part(block) for block in kept]) == event.content:
        return kept
    return [block for part in named_parts(event) if (block := _block(part))]


def _block(part: Part) -> Block | None:
    match part:
        case TextPart(text):
            return _text(text) if text.strip() else None
        case MediaPart():
            return {"type": "image" if part.is_image else "document", "source": _source(part)}
        case UnknownPart():
            return _text(part.words)


def _source(part: MediaPart) -> Block:
    if part.url:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def _result_content(result: Event) -> object:
    kept = provider_metadata.load_list(result, _KEY, "content")
    if kept and _texts(kept) == result.tool_result:
        return kept
    return result.tool_result


def _texts(blocks: Sequence[object]) -> str:
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _shortest(blocks: list[Block]) -> object:
    """Return one plain text as a string, which takes fewer tokens."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _call_ids(turns: Sequence[Turn]) -> dict[int, str]:
    """Return the ids to write, by the identity of the call."""
    calls = [s.event for t in turns for s in t.said if s.event and s.call is None]
    calls = [event for event in calls if event.type is EventType.TOOL_CALL]
    chosen = distinct([plain_name(call.tool_call_id, _UNSAFE, MAX_CALL_ID_CHARS) for call in calls])
    return {id(call): one for call, one in zip(calls, chosen, strict=True)}


def _kept(event: Event, member: str) -> list[Block]:
    kept = provider_metadata.load_list(event, _KEY, member)
    return [block for block in kept if isinstance(block, dict)]


def _members(event: Event, member: str) -> Block:
    """Return members of a block that have no place in the event, such as `cache_control`."""
    found = provider_metadata.load(event, _KEY).get(member)
    protected = {"type", "id", "name", "input", "tool_use_id", "content", "is_error"}
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if name not in protected}
