"""OpenAI's chat messages to canonical events.

What an event has no place for is kept in its metadata (see `extras`), so that rendering gives
the same messages back. Roles `system` and `developer` become messages of role system. A tool
message whose call is not in the payload becomes a message of role tool and is reported. Ids of
calls that repeat are made unique; the original comes back when rendered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import extras, provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.model import Repair

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
Members = Mapping[str, object]


@dataclass(slots=True)
class _State:
    events: list[Event] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    calls: OpenCalls = field(default_factory=OpenCalls)


def parse(payload: str) -> Parsed:
    """Read the array of messages, or an object with the member `messages`.

    Raises FieldInvalidError with the path of the first member that is wrong, such as
    `payload[3].tool_calls[0].function.arguments`.
    """
    path, messages = values.messages_of(payload)
    state = _State(calls=OpenCalls(_given_ids(messages)))
    for index, message in enumerate(messages):
        _add_message(state, values.members(message, f"{path}[{index}]"), f"{path}[{index}]")
    return Parsed(tuple(state.events), tuple(state.repairs))


def _add_message(state: _State, message: Members, path: str) -> None:
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise FieldInvalidError(f"{path}.role", f"must be one of {', '.join(_ROLES)}", role)
    if role == "tool":
        _add_result(state, message, path)
    elif role == "assistant" and message.get("tool_calls"):
        _add_calls(state, message, path)
    else:
        state.events.append(_message_event(message, _ROLES[role], path))


def _message_event(message: Members, role: Role, path: str) -> Event:
    kept = _kept(message, {"name"} if isinstance(message.get("name"), str) else set())
    if message["role"] == "developer":
        kept["role"] = "developer"
    content = _content(message, path, kept)
    return Event(
        type=EventType.MESSAGE,
        role=role,
        content=content,
        author_name=values.name(message.get("name"), f"{path}.name"),
        metadata=_metadata({"message": kept}, path),
    )


def _add_calls(state: _State, message: Members, path: str) -> None:
    calls = values.array(message["tool_calls"], f"{path}.tool_calls")
    kept: dict[str, object] = {}
    begins = _follows_assistant(state)
    if message.get("content") is None:
        kept = {"message": _kept(message, set())}
    else:
        state.events.append(_message_event(_without_calls(message), Role.ASSISTANT, path))
        begins = False
    for index, call in enumerate(calls):
        head = {**kept, "begins_message": True} if begins else kept
        _add_call(state, call, f"{path}.tool_calls[{index}]", head if index == 0 else {})


def _add_call(state: _State, value: object, path: str, head: Members) -> None:
    entry = values.members(value, path)
    if entry.get("type", "function") != "function":
        raise FieldInvalidError(f"{path}.type", "must be function", entry.get("type"))
    function = values.members(entry.get("function"), f"{path}.function")
    original_id = values.identifier(entry.get("id"), f"{path}.id")
    event = _call_event(state, entry, function, path, head)
    state.calls.open(original_id, event)
    state.events.append(event)


def _call_event(
    state: _State, entry: Members, function: Members, path: str, head: Members
) -> Event:
    kept = {k: v for k, v in entry.items() if k not in {"id", "type", "function"}}
    original_id = str(entry["id"])
    tool_call_id = state.calls.unique(original_id)
    if tool_call_id != original_id:
        kept["id"] = original_id
    return Event(
        type=EventType.TOOL_CALL,
        tool_call_id=tool_call_id,
        tool_name=values.identifier(function.get("name"), f"{path}.function.name"),
        tool_input=values.json_text(function.get("arguments"), f"{path}.function.arguments"),
        metadata=_metadata({**head, "call": kept}, path),
    )


def _add_result(state: _State, message: Members, path: str) -> None:
    call_id = values.identifier(message.get("tool_call_id"), f"{path}.tool_call_id")
    call = state.calls.answer(call_id)
    if call is None:
        state.repairs.append(Repair("tool_call_missing", call_id))
        state.events.append(_message_event(message, Role.TOOL, path))
        return
    kept = _kept(message, {"tool_call_id"})
    content = _content(message, path, kept)
    state.events.append(_result_event(call, content, _metadata({"message": kept}, path)))


def _result_event(call: Event, content: str, metadata: dict[str, object]) -> Event:
    return Event(
        type=EventType.TOOL_RESULT,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        tool_result=content,
        metadata=metadata,
    )


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


def _kept(message: Members, canonical: set[str]) -> dict[str, object]:
    left_out = canonical | {"role", "content", "tool_calls"}
    return {name: value for name, value in message.items() if name not in left_out}


def _without_calls(message: Members) -> dict[str, object]:
    return {name: value for name, value in message.items() if name != "tool_calls"}


def _metadata(members: Members, path: str) -> dict[str, object]:
    return provider_metadata.metadata(provider_metadata.OPENAI_CHAT, members, path)


def _follows_assistant(state: _State) -> bool:
    last = state.events[-1] if state.events else None
    return last is not None and (last.role is Role.ASSISTANT or last.type is EventType.TOOL_CALL)


def _given_ids(messages: Sequence[object]) -> set[str]:
    entries = [
        entry
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("tool_calls"), list)
        for entry in message["tool_calls"]
    ]
    return {str(entry.get("id")) for entry in entries if isinstance(entry, dict)}
