"""The `input` or `output` items of OpenAI's responses to canonical events.

Takes the array of items, or an object with `input` or `output` (an array; `input` may be a string)
and perhaps `instructions`. What an event has no place for is kept in its metadata under
`openai_responses`: "content", the parts of a message or an output that was no string; "role", where
it is `developer`; "item", further members; "before", items such as reasoning that stand before it.
Such items at the very end belong to nothing and are reported as `item_left_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import joined, openai_part
from annals_context.domain.model import Repair

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
Members = Mapping[str, object]


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    reader = _Reader()
    path = values.ROOT
    if isinstance(root, dict):
        reader.add_instructions(root.get("instructions"), f"{path}.instructions")
        name = "input" if "input" in root else "output"
        path, root = f"{path}.{name}", root.get(name)
        if isinstance(root, str):
            root = [{"role": "user", "content": root}]
    for index, item in enumerate(values.array(root, path)):
        reader.add(values.members(item, f"{path}[{index}]"), f"{path}[{index}]")
    return reader.parsed()


@dataclass(slots=True)
class _Reader:
    events: list[Event] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    calls: OpenCalls = field(default_factory=OpenCalls)
    before: list[Members] = field(default_factory=list)

    def add_instructions(self, instructions: object, path: str) -> None:
        if instructions is not None:
            words = values.text(instructions, path)
            self.events.append(Event(type=EventType.MESSAGE, role=Role.SYSTEM, content=words))

    def add(self, item: Members, path: str) -> None:
        readers: dict[object, Callable[[Members, str], None]] = {
            "message": self._add_message,
            "function_call": self._add_call,
            "function_call_output": self._add_output,
        }
        kind = item.get("type", "message")
        read = readers.get(kind) if isinstance(kind, str) else None
        if not isinstance(kind, str):
            raise FieldInvalidError(f"{path}.type", "must be a string")
        if read is None:
            self.before.append(item)
        else:
            read(item, path)

    def parsed(self) -> Parsed:
        lost = [Repair("item_left_out", _id_of(item), "") for item in self.before]
        return Parsed(tuple(self.events), (*self.repairs, *lost))

    def _add_message(self, item: Members, path: str) -> None:
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise FieldInvalidError(f"{path}.role", f"must be one of {', '.join(_ROLES)}", role)
        words, parts = _words(item.get("content"), f"{path}.content")
        kept = {
            "role": role if role == "developer" else "",
            "content": parts,
            "item": _rest(item, {"type", "role", "content"}),
        }
        metadata = self._metadata(kept, path)
        self.events.append(
            Event(type=EventType.MESSAGE, role=_ROLES[role], content=words, metadata=metadata)
        )

    def _add_call(self, item: Members, path: str) -> None:
        given_id = values.identifier(item.get("call_id"), f"{path}.call_id")
        kept = {"item": _rest(item, {"type", "call_id", "name", "arguments"})}
        call = Event(
            type=EventType.TOOL_CALL,
            tool_call_id=self.calls.unique(given_id),
            tool_name=values.identifier(item.get("name"), f"{path}.name"),
            tool_input=values.json_text(item.get("arguments"), f"{path}.arguments"),
            metadata=self._metadata(kept, path),
        )
        self.calls.open(given_id, call)
        self.events.append(call)

    def _add_output(self, item: Members, path: str) -> None:
        given_id = values.identifier(item.get("call_id"), f"{path}.call_id")
        words, parts = _words(item.get("output"), f"{path}.output")
        call = self.calls.answer(given_id)
        if call is None:
            self.repairs.append(Repair("tool_call_missing", given_id, ""))
            self.events.append(Event(type=EventType.MESSAGE, role=Role.TOOL, content=words))
            return
        kept = {"content": parts, "item": _rest(item, {"type", "call_id", "output"})}
        self.events.append(
            Event(
                type=EventType.TOOL_RESULT,
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                tool_result=words,
                metadata=self._metadata(kept, path),
            )
        )

    def _metadata(self, members: Members, path: str) -> dict[str, object]:
        before, self.before = self.before, []
        kept = {"before": before, **members}
        return provider_metadata.metadata(provider_metadata.OPENAI_RESPONSES, kept, path)


def _id_of(item: Members) -> str:
    """Return the id of an item nobody checked; empty when it is none."""
    try:
        return values.identifier(item.get("id"), "id")
    except FieldInvalidError:
        return ""


def _words(content: object, path: str) -> tuple[str, list[object]]:
    """Return the words, and the parts where there are some."""
    if isinstance(content, str):
        return values.text(content, path), []
    if content is None:
        raise FieldInvalidError(path, "is required: a string or an array of parts")
    parts = [values.members(part, path) for part in values.array(content, path)]
    words = values.text(joined([openai_part(part) for part in parts]), path)
    is_plain = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return words, [] if is_plain else [*parts]


def _rest(item: Members, canonical: set[str]) -> dict[str, object]:
    return {name: value for name, value in item.items() if name not in canonical}
