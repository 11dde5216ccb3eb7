"""A provider's payload while it is read: its events, its open calls and what was mended.

What an event has no place for goes into its metadata under the name of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import Part, joined
from annals_context.domain.model import Repair

Members = Mapping[str, object]


@dataclass(slots=True)
class Transcript:
    """What was read so far. `key` names the format in the metadata of events."""

    key: str
    calls: OpenCalls = field(default_factory=OpenCalls)
    events: list[Event] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)

    def parsed(self) -> Parsed:
        """Return all of it."""
        return Parsed(tuple(self.events), tuple(self.repairs))

    def add_message(
        self, role: Role, words: str, kept: Members, path: str, *, author_name: str = ""
    ) -> None:
        """Add a message."""
        self.events.append(
            Event(
                type=EventType.MESSAGE,
                role=role,
                content=words,
                author_name=author_name,
                metadata=self.metadata(kept, path),
            )
        )

    def add_call(
        self,
        given_id: str,
        tool_call_id: str,
        *,
        tool_name: str,
        tool_input: str,
        kept: Members,
        path: str,
    ) -> None:
        """Add a call by its unique id; it waits for a result that names `given_id`."""
        call = Event(
            type=EventType.TOOL_CALL,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            tool_input=tool_input,
            metadata=self.metadata(kept, path),
        )
        self.calls.open(given_id, call)
        self.events.append(call)

    def add_result(
        self, call: Event, words: str, kept: Members, path: str, *, is_error: bool = False
    ) -> None:
        """Add the result of a call."""
        self.events.append(
            Event(
                type=EventType.TOOL_RESULT,
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                tool_result=words,
                is_error=is_error,
                metadata=self.metadata(kept, path),
            )
        )

    def add_lone_result(self, given_id: str, words: str) -> None:
        """Add a result that answers no call as a message, and report it."""
        self.repairs.append(Repair("tool_call_missing", given_id))
        self.events.append(Event(type=EventType.MESSAGE, role=Role.TOOL, content=words))

    def metadata(self, kept: Members, path: str) -> dict[str, object]:
        """Return the metadata that keeps what is not empty of `kept`."""
        return provider_metadata.metadata(self.key, kept, path)


@dataclass(slots=True)
class TurnsTranscript(Transcript):
    """A payload of turns, each a sequence of parts.

    `read`: what a part shows. `is_plain`: whether it is nothing but words. `waiting`: parts read
    since the last event.
    """

    read: Callable[[Members], Part] = field(kw_only=True)
    is_plain: Callable[[Members], bool] = field(kw_only=True)
    waiting: list[Members] = field(default_factory=list)

    def add_parts(self, role: Role, parts: Sequence[Members], path: str) -> None:
        """Add a message for each part where all are plain, else one that keeps them all."""
        if not all(self.is_plain(part) for part in parts):
            self.add_message(role, self.words(parts, path), {"content": parts}, path)
            return
        for part in parts:
            self.add_message(role, self.words([part], path), {}, path)

    def flush(self, role: Role, path: str) -> None:
        """Add what waits as messages."""
        parts, self.waiting = self.waiting, []
        self.add_parts(role, parts, path)

    def before_call(self, path: str) -> list[Members]:
        """Return what waits where it has no words, such as thoughts; else add it as messages."""
        if joined([self.read(part) for part in self.waiting]):
            self.flush(Role.ASSISTANT, path)
            return []
        parts, self.waiting = self.waiting, []
        return parts

    def words(self, parts: Sequence[Members], path: str) -> str:
        """Return the words of parts, a line each."""
        return values.text(joined([self.read(part) for part in parts]), path)


def role_of(message: Members, roles: Mapping[str, Role], path: str) -> Role:
    """Return who speaks. Raises FieldInvalidError for a role the format does not know."""
    name = message.get("role")
    if not isinstance(name, str) or name not in roles:
        raise FieldInvalidError(f"{path}.role", f"must be one of {', '.join(roles)}", name)
    return roles[name]


def rest(members: Members, *canonical: str) -> dict[str, object]:
    """Return the members that have no place in an event."""
    return {name: value for name, value in members.items() if name not in canonical}
