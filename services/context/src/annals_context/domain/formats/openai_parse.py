"""OpenAI's chat messages to canonical events.

What an event has no place for is kept in its metadata (see `extras`), so that rendering gives
the same messages back. Roles `system` and `developer` become messages of role system. A tool
message whose call is not in the payload becomes a message of role tool and is reported. Ids of
calls that repeat are made unique; the original comes back when rendered.
"""

from __future__ import annotations

from collections.abc import Sequence

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import EventType, Role
from annals_context.domain.formats import extras, provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.transcripts import Members, Transcript, rest, role_of
from annals_context.domain.model import Repair

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}


def parse(payload: str) -> Parsed:
    """Read the array of messages, or an object with the member `messages`.

    Raises FieldInvalidError with the path of the first member that is wrong, such as
    `payload[3].tool_calls[0].function.arguments`.
    """
    listed, path = values.listed(values.load(payload, values.ROOT), "messages")
    messages = values.array(listed, path)
    said = Transcript(provider_metadata.OPENAI_CHAT, OpenCalls(_given_ids(messages)))
    for message_path, message in values.objects(messages, path):
        _add(said, message, message_path)
    return said.parsed()


def _add(said: Transcript, message: Members, path: str) -> None:
    role = role_of(message, _ROLES, path)
    if role is Role.TOOL:
        _add_result(said, message, path)
    elif role is Role.ASSISTANT and message.get("tool_calls"):
        _add_calls(said, message, path)
    else:
        _add_message(said, message, role, path)


def _add_message(said: Transcript, message: Members, role: Role, path: str) -> None:
    kept = _kept(message, *(["name"] if isinstance(message.get("name"), str) else []))
    if message["role"] == "developer":
        kept["role"] = "developer"
    content = _content(message, path, kept)
    author_name = values.name(message.get("name"), f"{path}.name")
    said.add_message(role, content, {"message": kept}, path, author_name=author_name)


def _add_calls(said: Transcript, message: Members, path: str) -> None:
    calls = values.array(message["tool_calls"], f"{path}.tool_calls")
    kept: dict[str, object] = {}
    begins = _follows_assistant(said)
    if message.get("content") is None:
        kept = {"message": _kept(message)}
    else:
        _add_message(said, rest(message, "tool_calls"), Role.ASSISTANT, path)
        begins = False
    for index, call in enumerate(calls):
        head = {**kept, "begins_message": True} if begins else kept
        _add_call(said, call, f"{path}.tool_calls[{index}]", head if index == 0 else {})


def _add_call(said: Transcript, value: object, path: str, head: Members) -> None:
    entry = values.members(value, path)
    if entry.get("type", "function") != "function":
        raise FieldInvalidError(f"{path}.type", "must be function", entry.get("type"))
    function = values.members(entry.get("function"), f"{path}.function")
    given_id = values.identifier(entry.get("id"), f"{path}.id")
    kept = rest(entry, "id", "type", "function")
    tool_call_id = said.calls.unique(given_id)
    if tool_call_id != given_id:
        kept["id"] = given_id
    said.add_call(
        given_id,
        tool_call_id,
        tool_name=values.identifier(function.get("name"), f"{path}.function.name"),
        tool_input=values.json_text(function.get("arguments"), f"{path}.function.arguments"),
        kept={**head, "call": kept},
        path=path,
    )


def _add_result(said: Transcript, message: Members, path: str) -> None:
    given_id = values.identifier(message.get("tool_call_id"), f"{path}.tool_call_id")
    call = said.calls.answer(given_id)
    if call is None:
        said.repairs.append(Repair("tool_call_missing", given_id))
        _add_message(said, message, Role.TOOL, path)
        return
    kept = _kept(message, "tool_call_id")
    content = _content(message, path, kept)
    said.add_result(call, content, {"message": kept}, path)


def _content(message: Members, path: str, kept: dict[str, object]) -> str:
    """Return the text of a message; content that is no string is kept as it was."""
    content = message.get("content")
    if isinstance(content, str):
        return values.text(content, f"{path}.content")
    if content is None and message["role"] != "assistant":
        raise FieldInvalidError(f"{path}.content", "is required: a string or an array of parts")
    if content is not None:
        values.check_parts(content, f"{path}.content")
    kept["content"] = content
    return values.text(extras.joined_text(content), f"{path}.content")


def _kept(message: Members, *canonical: str) -> dict[str, object]:
    return rest(message, "role", "content", "tool_calls", *canonical)


def _follows_assistant(said: Transcript) -> bool:
    last = said.events[-1] if said.events else None
    return last is not None and (last.role is Role.ASSISTANT or last.type is EventType.TOOL_CALL)


def _given_ids(messages: Sequence[object]) -> set[str]:
    entries = [
        entry
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("tool_calls"), list)
        for entry in message["tool_calls"]
    ]
    return {str(entry.get("id")) for entry in entries if isinstance(entry, dict)}
