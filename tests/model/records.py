"""What a conversation is made of, and the model's word for "no"."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.model.said import Said

TRUNK = 1


class RefusedError(Exception):
    """The service must refuse this with `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Observation:
    """One version of an event: why it was made, what the event said then, under which key."""

    kind: str
    said: Said
    key: str = ""


@dataclass(eq=False, slots=True)
class Event:
    """An event as it is now, with its history."""

    seq: int
    branch: int
    said: Said
    turn_id: str = ""
    parent: Event | None = None
    origin: Event | None = None
    superseded_by: Event | None = None
    event_id: str = ""
    version: int = 0
    deleted: bool = False
    erased: bool = False
    edited: bool = False
    history: list[Observation] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        return not (self.deleted or self.erased)

    def observe(self, kind: str, key: str = "") -> None:
        self.version += 1
        self.history.append(Observation(kind, self.said, key))


@dataclass(frozen=True, slots=True)
class Item:
    """One event of an append. `event_id`: only where the caller names it."""

    said: Said
    key: str = ""
    parent: Event | None = None
    event_id: str = ""

    @property
    def payload(self) -> tuple[object, ...]:
        return ("append", self.said, self.parent)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one item, or of a stored turn."""

    event: Event
    replayed: bool
    version: int = 1
    created: bool = True
    said: Said | None = None


@dataclass(frozen=True, slots=True)
class Keyed:
    """What an idempotency key stands for."""

    payload: tuple[object, ...]
    stored: Stored


@dataclass(eq=False, slots=True)
class Branch:
    number: int
    parent: int
    fork_seq: int


@dataclass(eq=False, slots=True)
class Memory:
    memory_id: str
    content: str
    tags: tuple[str, ...]
