"""What a hit stands for: an event, one of its chunks, or a conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from copy import copy
from enum import StrEnum
from functools import cached_property
from uuid import UUID

from annals_storage.domain.fusion import Component, RankedEvent, Ranking
from annals_storage.domain.rescoring import Found, Rescored
from annals_storage.domain.search import ScoredChunk


class Grouping(StrEnum):
    """What a hit stands for."""

    EVENT = "event"
    CHUNK = "chunk"
    CONVERSATION = "conversation"


Explain = Callable[[UUID], tuple[Component, ...]]


def to_rank(found: Found, group_by: Grouping) -> Found:
    """Return what the engine found as it is ranked: chunks that are hits count as events."""
    if group_by is not Grouping.CHUNK:
        return found
    return {
        signal: [chunk._replace(event_id=chunk.chunk_id) for chunk in chunks]
        for signal, chunks in found.items()
    }


def has_groups(found: Found, group_by: Grouping, count: int) -> bool:
    """Whether there can be `count` hits of what the engine found."""
    key = _KEYS[group_by]
    groups: set[int] = set()
    for chunks in found.values():
        for chunk in chunks:
            groups.add(key(chunk).int)
            if len(groups) >= count:
                return True
    return False


class Ranked:
    """What a search found, in order, before it is read back from PostgreSQL.

    `events` are the ranking's; grouped by chunk, their `event_id` is a chunk's id, as it is for
    `explain`. `chunk` tells what each of them really is.
    """

    def __init__(
        self,
        ranking: Ranking | Rescored,
        found: Found,
        group_by: Grouping = Grouping.EVENT,
        *,
        min_score: float = 0.0,
    ) -> None:
        """`found`: as the engine gave it. `min_score`: of the events that are kept."""
        # Without a threshold everything counts, opposite meanings (negative cosines) included.
        self.events: Sequence[RankedEvent] = [
            event for event in ranking.events if not min_score or event.score >= min_score
        ]
        self.explain: Explain = ranking.explain
        self.group_by = group_by
        self._found = found

    def reordered(self, events: Sequence[RankedEvent], explain: Explain) -> Ranked:
        """Return the same in another order, explained by `explain`."""
        other = copy(self)
        other.events, other.explain = events, explain
        return other

    def chunk(self, event: RankedEvent) -> ScoredChunk:
        """Return the chunk that speaks for an entry, as the engine found it."""
        return self._chunks[event.event_id.int, event.chunk_index]

    def place(self, event: RankedEvent) -> tuple[UUID, int]:
        """Return (event_id, chunk_index) of the chunk that speaks for an entry."""
        if self.group_by is not Grouping.CHUNK:
            return event.event_id, event.chunk_index
        return self.chunk(event).event_id, event.chunk_index

    def group_size(self, event: RankedEvent) -> int:
        """Return how many candidates the hit stands for, itself included."""
        if self.group_by is not Grouping.CONVERSATION:
            return self._sizes[event.event_id.int]
        return self._sizes[self.chunk(event).conversation_id.int]

    def heads_first(self) -> tuple[list[RankedEvent], list[RankedEvent]]:
        """Return the best entry of each group, and all others; each in order."""
        if self.group_by is not Grouping.CONVERSATION:
            return list(self.events), []
        return self._next(self.events, frozenset(), len(self.events))

    def next_batch(
        self, left: Sequence[RankedEvent], taken: Container[UUID], count: int
    ) -> tuple[list[RankedEvent], list[RankedEvent]]:
        """Return the next `count` entries, each of a group of its own, and what is left then.

        `taken`: conversations that have their hit; grouped otherwise, nothing is taken.
        """
        if self.group_by is not Grouping.CONVERSATION:
            return list(left[:count]), list(left[count:])
        return self._next(left, taken, count)

    def _next(
        self, left: Iterable[RankedEvent], taken: Container[UUID], count: int
    ) -> tuple[list[RankedEvent], list[RankedEvent]]:
        batch: dict[UUID, RankedEvent] = {}
        later: list[RankedEvent] = []
        for event in left:
            conversation = self.chunk(event).conversation_id
            if conversation in taken:
                continue
            if conversation in batch or len(batch) == count:
                later.append(event)
            else:
                batch[conversation] = event
        return list(batch.values()), later

    @cached_property
    def _chunks(self) -> Mapping[tuple[int, int], ScoredChunk]:
        # Numbers, not UUIDs: hashing those is slow.
        key = _KEYS[Grouping.CHUNK if self.group_by is Grouping.CHUNK else Grouping.EVENT]
        return {
            (key(chunk).int, chunk.chunk_index): chunk
            for chunks in self._found.values()
            for chunk in chunks
        }

    @cached_property
    def _sizes(self) -> Mapping[int, int]:
        group_of, member_of = _KEYS[self.group_by], _MEMBERS[self.group_by]
        groups = {
            member_of(chunk).int: group_of(chunk).int
            for chunks in self._found.values()
            for chunk in chunks
        }
        return Counter(groups.values())


def _chunk_id(chunk: ScoredChunk) -> UUID:
    return chunk.chunk_id


def _event_id(chunk: ScoredChunk) -> UUID:
    return chunk.event_id


def _conversation_id(chunk: ScoredChunk) -> UUID:
    return chunk.conversation_id


_KEYS: Mapping[Grouping, Callable[[ScoredChunk], UUID]] = {
    Grouping.EVENT: _event_id,
    Grouping.CHUNK: _chunk_id,
    Grouping.CONVERSATION: _conversation_id,
}
_MEMBERS: Mapping[Grouping, Callable[[ScoredChunk], UUID]] = {
    Grouping.EVENT: _chunk_id,
    Grouping.CHUNK: _chunk_id,
    Grouping.CONVERSATION: _event_id,
}
"""What the size of a group counts."""
