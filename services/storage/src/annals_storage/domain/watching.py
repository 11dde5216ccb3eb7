"""Watches: where they stand, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_storage.domain.events import Event


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of the database.

    `incarnation` changes when the database is replaced by another one or by a backup of itself.
    Every transaction with an xid below `horizon` has ended and is visible.
    """

    incarnation: str
    horizon: int


@dataclass(frozen=True, slots=True)
class Place:
    """After which event a watch of an agent goes on: in the order of (xid, conversation, seq).

    Without a conversation, everything of the transaction was delivered.
    """

    xid: int
    conversation_id: UUID | None = None
    seq: int = 0

    def is_before(self, arrival: Arrival) -> bool:
        """Whether the event comes after this place."""
        if arrival.xid != self.xid:
            return arrival.xid > self.xid
        if self.conversation_id is None:
            return False
        return (arrival.conversation_id, arrival.seq) > (self.conversation_id, self.seq)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that a transaction brought, without its words, `text_bytes` long as they are."""

    xid: int
    conversation_id: UUID
    seq: int
    event_id: UUID
    text_bytes: int

    @property
    def place(self) -> Place:
        """The place after it."""
        return Place(self.xid, self.conversation_id, self.seq)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came to an agent after a place, in order.

    `until`: everything up to the end of this transaction is in `rows`. `cut`: more may follow.
    `large_xid`: the next transaction is too large for one answer; `rows` is then empty.
    """

    mark: Mark
    rows: tuple[Arrival, ...]
    until: int
    cut: bool
    large_xid: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The events that one transaction brought to one conversation: all of these seqs."""

    xid: int
    conversation_id: UUID
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class WatchPage:
    """The next answer of a watch. `cursor`: where to go on after it. `more`: at once."""

    events: tuple[Event, ...]
    cursor: tuple[str, ...]
    more: bool = False
