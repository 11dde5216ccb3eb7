"""Gemini's contents to canonical events.

Takes an object with `contents` and perhaps `systemInstruction`, or the array of the contents;
members may be written in snake case, as some clients do. What an event has no place for (images,
thoughts and their signatures) is kept in its metadata under `gemini_contents`: "content", the parts
of a message that was more than texts; "before", parts between which and a call nothing was said;
"part", members beside a call or a result; "response", a result that was no plain text.

A call without an id is named by its place in the payload. A result without an id answers the first
open call of its tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.gemini_contents import response_words
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import gemini_part, joined
from annals_context.domain.model import Repair

_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.USER}
_KEY = provider_metadata.GEMINI_CONTENTS
_KINDS = ("text", "functionCall", "functionResponse")
_PART_MEMBERS = (
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "thoughtSignature",
    "systemInstruction",
)
_BY_SNAKE_CASE = {re.sub(r"([A-Z])", r"_\1", name).lower(): name for name in _PART_MEMBERS}
Members = Mapping[str, object]


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    reader = _Reader()
    path = values.ROOT
    if isinstance(root, dict):
        root = _camel(root)
        reader.add_system(root.get("systemInstruction"), f"{path}.systemInstruction")
        path, root = f"{path}.contents", root.get("contents")
    for index, content in enumerate(values.array(root, path)):
        reader.add_content(values.members(content, f"{path}[{index}]"), f"{path}[{index}]")
    return Parsed(tuple(reader.events), tuple(reader.repairs))


@dataclass(slots=True)
class _Reader:
    events: list[Event] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    calls: OpenCalls = field(default_factory=OpenCalls)
    waiting: list[Members] = field(default_factory=list)
    """Parts read since the last event."""

    def add_system(self, system: object, path: str) -> None:
        if system is None:
            return
        parts = _parts(values.members(system, path).get("parts"), f"{path}.parts")
        self.events += _messages(parts, Role.SYSTEM, path)

    def add_content(self, content: Members, path: str) -> None:
        name = content.get("role", "user")
        if not isinstance(name, str) or name not in _ROLES:
            raise FieldInvalidError(f"{path}.role", f"must be one of {', '.join(_ROLES)}", name)
        role = _ROLES[name]
        for index, part in enumerate(_parts(content.get("parts"), f"{path}.parts")):
            self._add_part(part, role, f"{path}.parts[{index}]")
        self._flush(role, path)

    def _add_part(self, part: Members, role: Role, path: str) -> None:
        is_call, is_result = "functionCall" in part, "functionResponse" in part
        if is_call and role is Role.ASSISTANT:
            self._add_call(part, path)
        elif is_result and role is Role.USER:
            self._flush(role, path)
            self._add_result(part, path)
        elif is_call or is_result:
            raise FieldInvalidError(
                path, "functionCall is the model's, functionResponse the user's"
            )
        else:
            self.waiting.append(part)

    def _add_call(self, part: Members, path: str) -> None:
        before: list[Members] = []
        if joined([gemini_part(one) for one in self.waiting]):
            self._flush(Role.ASSISTANT, path)
        else:
            before, self.waiting = self.waiting, []
        path = f"{path}.functionCall"
        function = values.members(part["functionCall"], path)
        given_id = _given_id(function, path) or f"call_{len(self.events)}"
        arguments = values.members(function.get("args") or {}, f"{path}.args")
        call = Event(
            type=EventType.TOOL_CALL,
            tool_call_id=self.calls.unique(given_id),
            tool_name=values.identifier(function.get("name"), f"{path}.name"),
            tool_input=values.encoded_text(arguments, f"{path}.args"),
            metadata=_metadata({"before": before, "part": _beside(part, "functionCall")}, path),
        )
        self.calls.open(given_id, call)
        self.events.append(call)

    def _add_result(self, part: Members, path: str) -> None:
        path = f"{path}.functionResponse"
        function = values.members(part["functionResponse"], path)
        name = values.identifier(function.get("name"), f"{path}.name")
        given_id = _given_id(function, path)
        call = self.calls.answer(given_id) if given_id else self.calls.answer_by_name(name)
        words, has_failed, response = _response(function, f"{path}.response")
        if call is None:
            self.repairs.append(Repair("tool_call_missing", given_id or name, ""))
            self.events.append(Event(type=EventType.MESSAGE, role=Role.TOOL, content=words))
            return
        kept = {"part": _beside(part, "functionResponse"), "response": response}
        self.events.append(
            Event(
                type=EventType.TOOL_RESULT,
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                tool_result=words,
                is_error=has_failed,
                metadata=_metadata(kept, path),
            )
        )

    def _flush(self, role: Role, path: str) -> None:
        parts, self.waiting = self.waiting, []
        self.events += _messages(parts, role, path)


def _messages(parts: Sequence[Members], role: Role, path: str) -> list[Event]:
    """Return a message for each part where all are plain texts, else one that keeps them all."""
    if all(part.keys() == {"text"} for part in parts):
        return [_message([part], role, path, {}) for part in parts]
    return [_message(parts, role, path, {"content": parts})]


def _message(parts: Sequence[Members], role: Role, path: str, kept: Members) -> Event:
    return Event(
        type=EventType.MESSAGE,
        role=role,
        content=values.text(joined([gemini_part(part) for part in parts]), path),
        metadata=_metadata(kept, path),
    )


def _parts(value: object, path: str) -> list[dict[str, object]]:
    parts = []
    for index, part in enumerate(values.array(value, path)):
        read = _camel(values.members(part, f"{path}[{index}]"))
        if not read:
            raise FieldInvalidError(f"{path}[{index}]", "must have a member such as text")
        if len(read.keys() & {*_KINDS}) > 1:
            raise FieldInvalidError(f"{path}[{index}]", f"must have one of {', '.join(_KINDS)}")
        if "text" in read:
            values.text(read["text"], f"{path}[{index}].text")
        parts.append(read)
    return parts


def _response(function: Members, path: str) -> tuple[str, bool, Members]:
    """Return what a result says, whether it failed, and the response where it is no plain text."""
    response = values.members(function.get("response") or {}, path)
    values.encoded_text(response, path)
    words, has_failed = response_words(response)
    is_plain = has_failed or (response.keys() == {"result"} and words == response["result"])
    return values.text(words, path), has_failed, {} if is_plain else response


def _given_id(function: Members, path: str) -> str:
    return values.identifier(function["id"], f"{path}.id") if function.get("id") else ""


def _beside(part: Members, main: str) -> dict[str, object]:
    return {name: value for name, value in part.items() if name != main}


def _camel(members: Members) -> dict[str, object]:
    return {_BY_SNAKE_CASE.get(name, name): value for name, value in members.items()}


def _metadata(members: Members, path: str) -> dict[str, object]:
    return provider_metadata.metadata(_KEY, members, path)
