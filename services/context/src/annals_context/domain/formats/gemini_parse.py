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

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.gemini_contents import response_words
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import gemini_part
from annals_context.domain.formats.transcripts import Members, TurnsTranscript, rest, role_of

_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.USER}
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


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    said = TurnsTranscript(provider_metadata.GEMINI_CONTENTS, read=gemini_part, is_plain=_is_text)
    if isinstance(root, dict):
        root = _camel(root)
        _add_system(said, root.get("systemInstruction"), f"{values.ROOT}.systemInstruction")
    for path, content in values.objects(*values.listed(root, "contents")):
        _add_content(said, content, path)
    return said.parsed()


def _add_system(said: TurnsTranscript, system: object, path: str) -> None:
    if system is not None:
        parts = _parts(values.members(system, path).get("parts"), f"{path}.parts")
        said.add_parts(Role.SYSTEM, parts, path)


def _add_content(said: TurnsTranscript, content: Members, path: str) -> None:
    role = role_of({"role": "user", **content}, _ROLES, path)
    for index, part in enumerate(_parts(content.get("parts"), f"{path}.parts")):
        _add_part(said, part, role, f"{path}.parts[{index}]")
    said.flush(role, path)


def _add_part(said: TurnsTranscript, part: Members, role: Role, path: str) -> None:
    is_call, is_result = "functionCall" in part, "functionResponse" in part
    if is_call and role is Role.ASSISTANT:
        _add_call(said, part, path)
    elif is_result and role is Role.USER:
        said.flush(role, path)
        _add_result(said, part, path)
    elif is_call or is_result:
        raise FieldInvalidError(path, "functionCall is the model's, functionResponse the user's")
    else:
        said.waiting.append(part)


def _add_call(said: TurnsTranscript, part: Members, path: str) -> None:
    before = said.before_call(path)
    path = f"{path}.functionCall"
    function = values.members(part["functionCall"], path)
    given_id = _given_id(function, path) or f"call_{len(said.events)}"
    arguments = values.members(function.get("args") or {}, f"{path}.args")
    said.add_call(
        given_id,
        said.calls.unique(given_id),
        tool_name=values.identifier(function.get("name"), f"{path}.name"),
        tool_input=values.encoded_text(arguments, f"{path}.args"),
        kept={"before": before, "part": rest(part, "functionCall")},
        path=path,
    )


def _add_result(said: TurnsTranscript, part: Members, path: str) -> None:
    path = f"{path}.functionResponse"
    function = values.members(part["functionResponse"], path)
    name = values.identifier(function.get("name"), f"{path}.name")
    given_id = _given_id(function, path)
    call = said.calls.answer(given_id) if given_id else said.calls.answer_by_name(name)
    words, has_failed, response = _response(function, f"{path}.response")
    if call is None:
        said.add_lone_result(given_id or name, words)
        return
    kept = {"part": rest(part, "functionResponse"), "response": response}
    said.add_result(call, words, kept, path, is_error=has_failed)


def _parts(value: object, path: str) -> list[Members]:
    return [_part(part, part_path) for part_path, part in values.objects(value, path)]


def _part(given: Members, path: str) -> Members:
    part = _camel(given)
    if not part:
        raise FieldInvalidError(path, "must have a member such as text")
    if len(part.keys() & {*_KINDS}) > 1:
        raise FieldInvalidError(path, f"must have one of {', '.join(_KINDS)}")
    if "text" in part:
        values.text(part["text"], f"{path}.text")
    return part


def _response(function: Members, path: str) -> tuple[str, bool, Members]:
    """Return what a result says, whether it failed, and the response where it is no plain text."""
    response = values.members(function.get("response") or {}, path)
    values.encoded_text(response, path)
    words, has_failed = response_words(response)
    is_plain = has_failed or (response.keys() == {"result"} and words == response["result"])
    return values.text(words, path), has_failed, {} if is_plain else response


def _given_id(function: Members, path: str) -> str:
    return values.identifier(function["id"], f"{path}.id") if function.get("id") else ""


def _is_text(part: Members) -> bool:
    return part.keys() == {"text"}


def _camel(members: Members) -> dict[str, object]:
    return {_BY_SNAKE_CASE.get(name, name): value for name, value in members.items()}
