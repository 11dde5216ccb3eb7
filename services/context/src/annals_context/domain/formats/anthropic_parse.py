"""Anthropic's messages to canonical events.

Takes an object with `messages` and perhaps `system`, or the array of the messages. What an event
has no place for (images, signed thoughts, `cache_control`) is kept in its metadata under
`anthropic_messages`: "content", the blocks of a message or a result that was more than texts;
"before", blocks between which and a call nothing was said; "call", members of a call's or a
result's block. Rendering in this format gives them back, rendering in others leaves them out but
for images and documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import anthropic_part, joined
from annals_context.domain.model import Repair

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_KEY = provider_metadata.ANTHROPIC_MESSAGES
Members = Mapping[str, object]


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    reader = _Reader()
    path = values.ROOT
    if isinstance(root, dict):
        reader.add_system(root.get("system"), f"{path}.system")
        path, root = f"{path}.messages", root.get("messages")
    for index, message in enumerate(values.array(root, path)):
        reader.add_message(values.members(message, f"{path}[{index}]"), f"{path}[{index}]")
    return Parsed(tuple(reader.events), tuple(reader.repairs))


@dataclass(slots=True)
class _Reader:
    events: list[Event] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    calls: OpenCalls = field(default_factory=OpenCalls)
    waiting: list[Members] = field(default_factory=list)
    """Blocks read since the last event."""

    def add_system(self, system: object, path: str) -> None:
        if system is None:
            return
        self.events += _messages(_blocks(system, path), Role.SYSTEM, path)

    def add_message(self, message: Members, path: str) -> None:
        name = message.get("role")
        if not isinstance(name, str) or name not in _ROLES:
            raise FieldInvalidError(f"{path}.role", f"must be one of {', '.join(_ROLES)}", name)
        role = _ROLES[name]
        for index, block in enumerate(_blocks(message.get("content"), f"{path}.content")):
            self._add_block(block, role, f"{path}.content[{index}]")
        self._flush(role, path)

    def _add_block(self, block: Members, role: Role, path: str) -> None:
        match block["type"]:
            case "tool_use" if role is Role.ASSISTANT:
                self._add_call(block, path)
            case "tool_result" if role is Role.USER:
                self._flush(role, path)
                self._add_result(block, path)
            case "tool_use" | "tool_result":
                raise FieldInvalidError(
                    f"{path}.type", "tool_use is the assistant's, tool_result the user's"
                )
            case _:
                self.waiting.append(block)

    def _add_call(self, block: Members, path: str) -> None:
        before: list[Members] = []
        if joined([anthropic_part(one) for one in self.waiting]):
            self._flush(Role.ASSISTANT, path)
        else:
            before, self.waiting = self.waiting, []
        given_id = values.identifier(block.get("id"), f"{path}.id")
        arguments = values.members(block.get("input"), f"{path}.input")
        call = Event(
            type=EventType.TOOL_CALL,
            tool_call_id=self.calls.unique(given_id),
            tool_name=values.identifier(block.get("name"), f"{path}.name"),
            tool_input=values.encoded_text(arguments, f"{path}.input"),
            metadata=_metadata(
                {"before": before, "call": _rest(block, {"id", "name", "input"})}, path
            ),
        )
        self.calls.open(given_id, call)
        self.events.append(call)

    def _add_result(self, block: Members, path: str) -> None:
        given_id = values.identifier(block.get("tool_use_id"), f"{path}.tool_use_id")
        blocks = _blocks(block.get("content") or "", f"{path}.content")
        words = _words(blocks, f"{path}.content")
        call = self.calls.answer(given_id)
        if call is None:
            self.repairs.append(Repair("tool_call_missing", given_id, ""))
            self.events.append(Event(type=EventType.MESSAGE, role=Role.TOOL, content=words))
            return
        kept = {
            "content": [] if len(blocks) == 1 and _is_text(blocks[0]) else blocks,
            "call": _rest(block, {"tool_use_id", "content", "is_error"}),
        }
        self.events.append(
            Event(
                type=EventType.TOOL_RESULT,
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                tool_result=words,
                is_error=block.get("is_error") is True,
                metadata=_metadata(kept, path),
            )
        )

    def _flush(self, role: Role, path: str) -> None:
        blocks, self.waiting = self.waiting, []
        self.events += _messages(blocks, role, path)


def _messages(blocks: Sequence[Members], role: Role, path: str) -> list[Event]:
    """Return a message for each block where all are plain texts, else one that keeps them all."""
    if all(_is_text(block) for block in blocks):
        return [_message([block], role, path, {}) for block in blocks]
    return [_message(blocks, role, path, {"content": blocks})]


def _message(blocks: Sequence[Members], role: Role, path: str, kept: Members) -> Event:
    return Event(
        type=EventType.MESSAGE,
        role=role,
        content=_words(blocks, path),
        metadata=_metadata(kept, path),
    )


def _blocks(content: object, path: str) -> Sequence[Members]:
    if isinstance(content, str):
        return [{"type": "text", "text": values.text(content, path)}]
    if content is None:
        raise FieldInvalidError(path, "is required: a string or an array of blocks")
    values.check_parts(content, path)
    return [values.members(block, path) for block in values.array(content, path)]


def _words(blocks: Sequence[Members], path: str) -> str:
    return values.text(joined([anthropic_part(block) for block in blocks]), path)


def _is_text(block: Members) -> bool:
    return block.keys() == {"type", "text"}


def _rest(block: Members, canonical: set[str]) -> dict[str, object]:
    return {name: value for name, value in block.items() if name not in canonical | {"type"}}


def _metadata(members: Members, path: str) -> dict[str, object]:
    return provider_metadata.metadata(_KEY, members, path)
