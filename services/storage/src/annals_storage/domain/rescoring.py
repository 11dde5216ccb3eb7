"""Ranks the best candidates of a search once more, by what is too dear for all of them.

Late interaction compares texts token by token; a speaker who is named in the query is often asked
about. Weights, depth and what each part adds: docs/retrieval.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from annals_storage.domain.fusion import WEIGHTS, Component, RankedEvent, Ranking, Weights
from annals_storage.domain.search import ScoredChunk, Signal

RESCORED_EVENTS = 100
FINAL_WEIGHTS: Weights = {Signal.DENSE: 0.1, Signal.BM25: 0.3, Signal.MAXSIM: 0.6}
SPEAKER_BONUS = 0.3
"""Of the greatest score an event can have by itself."""
Found = Mapping[Signal, Sequence[ScoredChunk]]


class Rescored:
    """The first `depth` events of a ranking in their new order; the others follow in the old."""

    def __init__(self, first: Ranking, head: Ranking, depth: int) -> None:
        self._first, self._head = first, head
        tail = first.events[depth:]
        best_of_tail = tail[0].score if tail else 0.0
        # The others stay below: what they were not compared by might have moved them up.
        self._tail_scale = head.events[-1].score / best_of_tail if best_of_tail > 0 else 0.0
        self._is_tail = frozenset(event.event_id for event in tail)
        self.events: list[RankedEvent] = [*head.events, *map(self._lowered, tail)]

    def explain(self, event_id: UUID) -> tuple[Component, ...]:
        """Return the parts of an event's score."""
        if event_id not in self._is_tail:
            return self._head.explain(event_id)
        parts = self._first.explain(event_id)
        return tuple(part.weighted(self._tail_scale) for part in parts)

    def _lowered(self, event: RankedEvent) -> RankedEvent:
        return RankedEvent(event.event_id, event.score * self._tail_scale, event.chunk_index)


def head_of(first: Ranking, found: Found, depth: int) -> dict[Signal, list[ScoredChunk]]:
    """Return the chunks of the first `depth` events, by signal."""
    head = {event.event_id for event in first.events[:depth]}
    return {
        signal: [chunk for chunk in chunks if chunk.event_id in head]
        for signal, chunks in found.items()
    }


def rescored(
    first: Ranking,
    head: Found,
    depth: int,
    *,
    similarities: Mapping[UUID, float],
    named_events: frozenset[UUID],
) -> Rescored:
    """Rank the head anew.

    `similarities`: MaxSim by chunk id; a chunk that has none counts as it did in the first
    ranking. `named_events`: whose speakers the query names.
    """
    signals: dict[Signal, Sequence[ScoredChunk]] = dict(head)
    if similarities:
        signals[Signal.MAXSIM] = list(_with_similarity(first, head, similarities))
    weights = FINAL_WEIGHTS if similarities else WEIGHTS
    bonuses = dict.fromkeys(named_events, SPEAKER_BONUS)
    return Rescored(first, Ranking(signals, weights=weights, bonuses=bonuses), depth)


def _with_similarity(
    first: Ranking, head: Found, similarities: Mapping[UUID, float]
) -> Iterable[ScoredChunk]:
    low, high = min(similarities.values()), max(similarities.values())
    firsts = {event.event_id: event.score for event in first.events}
    chunks = {chunk.chunk_id: chunk for chunks in head.values() for chunk in chunks}
    for chunk_id, chunk in chunks.items():
        as_before = low + firsts[chunk.event_id] * (high - low)
        yield chunk._replace(score=similarities.get(chunk_id, as_before))


def is_named(author_name: str | None, query: str) -> bool:
    """Whether a query names a speaker: by any word of the name, whole and in any case."""
    folded = query.casefold()
    return any(_stands_in(part, folded) for part in (author_name or "").casefold().split())


def _stands_in(part: str, query: str) -> bool:
    if part not in query:
        return False
    # Scripts without capitals often write without spaces as well.
    is_spaced = part.upper() != part
    return not is_spaced or re.search(rf"(?<!\w){re.escape(part)}(?!\w)", query) is not None
