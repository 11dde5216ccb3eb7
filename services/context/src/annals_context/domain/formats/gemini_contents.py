"""Canonical events to Gemini's contents.

The payload is an object with `contents` and, where there are system prompts, `systemInstruction`:
both go into a request of the Gemini API as they are. Choices where the format has no place for an
event:

- System prompts, turns, notes, results without calls, blank words and speakers' names as for
  Anthropic (see `anthropic_messages`).
- Results stand in the turn after the calls, in the order of the calls, as `{"result": …}` or
  `{"error": …}`. A call without a result gets an error that says so.
- Calls and results carry ids, unique in the payload: two calls of one tool stay apart.
- Names of tools take letters, digits, "_", ".", ":" and "-", up to 64 characters; a changed one is
  reported as `tool_name_changed`. Arguments must be an object: anything else becomes the member
  `value` of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from annals_context.domain.events import Event
from annals_context.domain.formats import provider_metadata
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.parts import (
    MediaPart,
    Part,
    TextPart,
    UnknownPart,
    gemini_part,
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

MAX_TOOL_NAME_CHARS = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]|^[^A-Za-z_]")
_KEY = provider_metadata.GEMINI_CONTENTS
_PROTECTED = frozenset({"text", "functionCall", "functionResponse"})


def render(events: Sequence[Event]) -> Rendered:
    """Return the object with `systemInstruction` and `contents` for events in order."""
    return GeminiWriter(dialogue(events)).rendered()


def response_words(response: Mapping[str, object]) -> tuple[str, bool]:
    """Return what a function response says, and whether it failed."""
    for name in ("result", "output", "error"):
        if response.keys() == {name} and isinstance(response[name], str):
            return str(response[name]), name == "error"
    return dumps(response), False


class GeminiWriter(TurnWriter):
    """Writes a dialogue in parts."""

    def rendered(self) -> Rendered:
        """Return the payload."""
        payload: Block = {}
        if system := self.prompts():
            payload["systemInstruction"] = {"parts": system}
        payload["contents"] = [self.turn(turn) for turn in self.source.turns]
        return Rendered(dumps(payload), tuple(self.repairs))

    def turn(self, turn: Turn) -> Block:
        """Return a turn."""
        return {"role": "model" if turn.is_assistant else "user", "parts": self.blocks(turn)}

    def tool_name(self, call: Event) -> str:
        """Return the name of a function."""
        return plain_name(call.tool_name, _UNSAFE, MAX_TOOL_NAME_CHARS)

    def text(self, text: str) -> Block:
        """Return a text part."""
        return {"text": text}

    def content(self, event: Event) -> list[Block]:
        """Return the parts of a message: as they were read, else as others' parts say."""
        kept = provider_metadata.load_list(event, _KEY, "content")
        if kept and joined([gemini_part(part) for part in kept]) == event.content:
            return kept
        return [part for one in named_parts(event) if (part := _part(one))]

    def before(self, call: Event) -> list[Block]:
        """Return parts that stood before a call."""
        return provider_metadata.load_list(call, _KEY, "before")

    def call(self, call: Event, name: str) -> Block:
        """Return a function call."""
        arguments = arguments_object(call.tool_input)
        function = {"id": self.ids[id(call)], "name": name, "args": arguments}
        return {"functionCall": function} | _members(call)

    def result(self, call: Event, result: Event | None) -> Block:
        """Return a function response."""
        response: Block = {
            "id": self.ids[id(call)],
            "name": self.tool_name(call),
            "response": {"error": MISSING_RESULT},
        }
        if result is None:
            return {"functionResponse": response}
        response["response"] = _response_object(result)
        return {"functionResponse": response} | _members(result)


def _response_object(result: Event) -> Block:
    kept = provider_metadata.load(result, _KEY).get("response")
    if isinstance(kept, dict) and response_words(kept) == (result.tool_result, result.is_error):
        return kept
    return {"error" if result.is_error else "result": result.tool_result}


def _part(part: Part) -> Block | None:
    match part:
        case TextPart(text):
            return {"text": text} if text.strip() else None
        case MediaPart(url=url) if url:
            file = {"mimeType": part.media_type, "fileUri": url}
            return {"fileData": {name: value for name, value in file.items() if value}}
        case MediaPart():
            return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        case UnknownPart():
            return {"text": part.words}


def _members(event: Event) -> Block:
    """Return what stood beside a call or a result, such as `thoughtSignature`."""
    return provider_metadata.members(event, _KEY, "part", _PROTECTED)
