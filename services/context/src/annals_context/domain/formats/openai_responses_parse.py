"""The `input` or `output` items of OpenAI's responses to canonical events.

Takes the array of items, or an object with `input` or `output` (an array; `input` may be a string)
and perhaps `instructions`. What an event has no place for is kept in its metadata under
`openai_responses`: "content", the parts of a message or an output that was no string; "role", where
it is `developer`; "item", further members; "before", items such as reasoning that stand before it.
Such items at the very end belong to nothing and are reported as `item_left_out`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import joined, openai_part
from annals_context.domain.formats.transcripts import Members, Transcript, rest, role_of
from annals_context.domain.model import Repair

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    reader = _Reader()
    items, path = values.listed(root, "input", "output")
    if isinstance(root, dict):
        reader.add_instructions(root.get("instructions"), f"{values.ROOT}.instructions")
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
    for item_path, item in values.objects(items, path):
        reader.add(item, item_path)
    return reader.parsed()


@dataclass(slots=True)
class _Reader:
    said: Transcript = field(default_factory=lambda: Transcript(provider_metadata.OPENAI_RESPONSES))
    before: list[Members] = field(default_factory=list)
    """Items such as reasoning that stand before the next event."""

    def add_instructions(self, instructions: object, path: str) -> None:
        if instructions is not None:
            self.said.add_message(Role.SYSTEM, values.text(instructions, path), {}, path)

    def add(self, item: Members, path: str) -> None:
        readers: dict[object, Callable[[Members, str], None]] = {
            "message": self._add_message,
            "function_call": self._add_call,
            "function_call_output": self._add_output,
        }
        kind = item.get("type", "message")
        if not isinstance(kind, str):
            raise FieldInvalidError(f"{path}.type", "must be a string")
        if read := readers.get(kind):
            read(item, path)
        else:
            self.before.append(item)

    def parsed(self) -> Parsed:
        lost = [Repair("item_left_out", _id_of(item)) for item in self.before]
        self.said.repairs += lost
        return self.said.parsed()

    def _add_message(self, item: Members, path: str) -> None:
        role = role_of(item, _ROLES, path)
        words, parts = _words(item.get("content"), f"{path}.content")
        kept = {
            "role": "developer" if item["role"] == "developer" else "",
            "content": parts,
            "item": rest(item, "type", "role", "content"),
        }
        self.said.add_message(role, words, self._with_before(kept), path)

    def _add_call(self, item: Members, path: str) -> None:
        given_id = values.identifier(item.get("call_id"), f"{path}.call_id")
        kept = {"item": rest(item, "type", "call_id", "name", "arguments")}
        self.said.add_call(
            given_id,
            self.said.calls.unique(given_id),
            tool_name=values.identifier(item.get("name"), f"{path}.name"),
            tool_input=values.json_text(item.get("arguments"), f"{path}.arguments"),
            kept=self._with_before(kept),
            path=path,
        )

    def _add_output(self, item: Members, path: str) -> None:
        given_id = values.identifier(item.get("call_id"), f"{path}.call_id")
        words, parts = _words(item.get("output"), f"{path}.output")
        call = self.said.calls.answer(given_id)
        if call is None:
            self.said.add_lone_result(given_id, words)
            return
        kept = {"content": parts, "item": rest(item, "type", "call_id", "output")}
        self.said.add_result(call, words, self._with_before(kept), path)

    def _with_before(self, kept: Members) -> Members:
        before, self.before = self.before, []
        return {"before": before, **kept}


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
