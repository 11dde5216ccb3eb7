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
from dataclasses import dataclass, field

from annals_context.domain.events import Event, EventType
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
    distinct,
    plain_name,
)
from annals_context.domain.formats.turns import EMPTY_TEXT, Dialogue, Said, Turn, dialogue
from annals_context.domain.model import Repair

MAX_TOOL_NAME_CHARS = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]|^[^A-Za-z_]")
_KEY = provider_metadata.GEMINI_CONTENTS
_MAIN_MEMBERS = frozenset({"text", "functionCall", "functionResponse"})
Member = dict[str, object]


def render(events: Sequence[Event]) -> Rendered:
    """Return the object with `systemInstruction` and `contents` for events in order."""
    return _Writer(dialogue(events)).rendered()


def response_words(response: Mapping[str, object]) -> tuple[str, bool]:
    """Return what a function response says, and whether it failed."""
    for name in ("result", "output", "error"):
        if response.keys() == {name} and isinstance(response[name], str):
            return str(response[name]), name == "error"
    return dumps(response), False


@dataclass(slots=True)
class _Writer:
    source: Dialogue
    repairs: list[Repair] = field(default_factory=list)
    ids: Mapping[int, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def rendered(self) -> Rendered:
        self.repairs.extend(self.source.repairs)
        self.ids = _call_ids(self.source.turns)
        payload: Member = {}
        if system := [part for event in self.source.prompts for part in _content(event)]:
            payload["systemInstruction"] = {"parts": system}
        payload["contents"] = [self._turn(turn) for turn in self.source.turns]
        return Rendered(dumps(payload), tuple(self.repairs))

    def _turn(self, turn: Turn) -> Member:
        parts = [part for said in turn.said for part in self._parts(said)]
        if not parts:
            parts = [{"text": EMPTY_TEXT}]
            first = turn.said[0].event
            self.repairs.append(Repair("message_empty", "", first.event_id if first else ""))
        return {"role": "model" if turn.is_assistant else "user", "parts": parts}

    def _parts(self, said: Said) -> list[Member]:
        if said.call is not None:
            return [self._response(said.call, said.event)]
        if said.text is not None:
            return [{"text": said.text}] if said.text.strip() else []
        if said.event is None:
            return []
        if said.event.type is EventType.TOOL_CALL:
            return [*_kept(said.event, "before"), self._call(said.event)]
        return _content(said.event)

    def _call(self, call: Event) -> Member:
        name = plain_name(call.tool_name, _UNSAFE, MAX_TOOL_NAME_CHARS)
        if name != call.tool_name:
            self.repairs.append(Repair("tool_name_changed", call.tool_call_id, call.event_id))
        arguments = arguments_object(call.tool_input)
        function = {"id": self.ids[id(call)], "name": name, "args": arguments}
        return {"functionCall": function} | _members(call)

    def _response(self, call: Event, result: Event | None) -> Member:
        response: Member = {
            "id": self.ids[id(call)],
            "name": plain_name(call.tool_name, _UNSAFE, MAX_TOOL_NAME_CHARS),
            "response": {"error": MISSING_RESULT},
        }
        if result is None:
            return {"functionResponse": response}
        response["response"] = _response_object(result)
        return {"functionResponse": response} | _members(result)


def _response_object(result: Event) -> Member:
    kept = provider_metadata.load(result, _KEY).get("response")
    if isinstance(kept, dict) and response_words(kept) == (result.tool_result, result.is_error):
        return kept
    return {"error" if result.is_error else "result": result.tool_result}


def _content(event: Event) -> list[Member]:
    """Return the parts of a message: as they were read, else as other providers' parts say."""
    kept = _kept(event, "content")
    if kept and joined([gemini_part(part) for part in kept]) == event.content:
        return kept
    return [part for one in named_parts(event) if (part := _part(one))]


def _part(part: Part) -> Member | None:
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


def _call_ids(turns: Sequence[Turn]) -> dict[int, str]:
    """Return the ids to write, by the identity of the call."""
    said = [one.event for turn in turns for one in turn.said if one.call is None and one.event]
    calls = [event for event in said if event.type is EventType.TOOL_CALL]
    chosen = distinct([call.tool_call_id for call in calls])
    return {id(call): one for call, one in zip(calls, chosen, strict=True)}


def _kept(event: Event, member: str) -> list[Member]:
    kept = provider_metadata.load_list(event, _KEY, member)
    return [part for part in kept if isinstance(part, dict)]


def _members(event: Event) -> Member:
    """Return what stood beside a call or a result, such as `thoughtSignature`."""
    found = provider_metadata.load(event, _KEY).get("part")
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if name not in _MAIN_MEMBERS}
