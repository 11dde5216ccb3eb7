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
from collections.abc import Sequence

from annals_context.domain.events import Event
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
    plain_name,
)
from annals_context.domain.formats.turn_writing import Block, TurnWriter
from annals_context.domain.formats.turns import Turn, dialogue

MAX_CALL_ID_CHARS = 56
"""Of 64, so that repeated ones can be numbered."""
MAX_TOOL_NAME_CHARS = 128
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_KEY = provider_metadata.ANTHROPIC_MESSAGES
_PROTECTED = frozenset({"type", "id", "name", "input", "tool_use_id", "content", "is_error"})


def render(events: Sequence[Event]) -> Rendered:
    """Return the object with `system` and `messages` for events in order."""
    return AnthropicWriter(dialogue(events)).rendered()


class AnthropicWriter(TurnWriter):
    """Writes a dialogue in content blocks."""

    def rendered(self) -> Rendered:
        """Return the payload."""
        payload: Block = {}
        if system := self.prompts():
            payload["system"] = _shortest(system)
        payload["messages"] = [self.turn(turn) for turn in self.source.turns]
        return Rendered(dumps(payload), tuple(self.repairs))

    def turn(self, turn: Turn) -> Block:
        """Return a turn."""
        role = "assistant" if turn.is_assistant else "user"
        return {"role": role, "content": _shortest(self.blocks(turn))}

    def call_id(self, tool_call_id: str) -> str:
        """Return an id of 64 characters at most, once it is numbered."""
        return plain_name(tool_call_id, _UNSAFE, MAX_CALL_ID_CHARS)

    def tool_name(self, call: Event) -> str:
        """Return the name of a tool."""
        return plain_name(call.tool_name, _UNSAFE, MAX_TOOL_NAME_CHARS)

    def text(self, text: str) -> Block:
        """Return a text block."""
        return {"type": "text", "text": text}

    def content(self, event: Event) -> list[Block]:
        """Return the blocks of a message: as they were read, else as others' parts say."""
        kept = provider_metadata.load_list(event, _KEY, "content")
        if kept and joined([anthropic_part(block) for block in kept]) == event.content:
            return kept
        return [block for part in named_parts(event) if (block := self._block(part))]

    def before(self, call: Event) -> list[Block]:
        """Return blocks that stood before a call."""
        return provider_metadata.load_list(call, _KEY, "before")

    def call(self, call: Event, name: str) -> Block:
        """Return a `tool_use` block."""
        block: Block = {"type": "tool_use", "id": self.ids[id(call)], "name": name}
        return block | {"input": arguments_object(call.tool_input)} | _members(call)

    def result(self, call: Event, result: Event | None) -> Block:
        """Return a `tool_result` block."""
        block: Block = {"type": "tool_result", "tool_use_id": self.ids[id(call)]}
        if result is None:
            return block | {"content": MISSING_RESULT, "is_error": True}
        block["content"] = _result_content(result)
        if result.is_error:
            block["is_error"] = True
        return block | _members(result)

    def _block(self, part: Part) -> Block | None:
        match part:
            case TextPart(text):
                return self.text(text) if text.strip() else None
            case MediaPart():
                return {"type": "image" if part.is_image else "document", "source": _source(part)}
            case UnknownPart():
                return self.text(part.words)


class AnthropicContextWriter(AnthropicWriter):
    """Writes for a model to read: without marks of the cache, of which a request may have four."""

    def blocks(self, turn: Turn) -> list[Block]:
        """Return the blocks of a turn."""
        return [_unmarked(block) for block in super().blocks(turn)]

    def prompts(self) -> list[Block]:
        """Return the blocks of the prompts."""
        return [_unmarked(block) for block in super().prompts()]


def _unmarked(block: Block) -> Block:
    kept = {name: value for name, value in block.items() if name != "cache_control"}
    if isinstance(content := kept.get("content"), list):
        kept["content"] = [_unmarked(one) if isinstance(one, dict) else one for one in content]
    return kept


def _source(part: MediaPart) -> Block:
    if part.url:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": part.data}


def _result_content(result: Event) -> object:
    kept = provider_metadata.load_list(result, _KEY, "content")
    if kept and joined([anthropic_part(block) for block in kept]) == result.tool_result:
        return kept
    return result.tool_result


def _shortest(blocks: list[Block]) -> object:
    """Return one plain text as a string, which takes fewer tokens."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _members(event: Event) -> Block:
    """Return members of a block that have no place in the event, such as `cache_control`."""
    return provider_metadata.members(event, _KEY, "call", _PROTECTED)
