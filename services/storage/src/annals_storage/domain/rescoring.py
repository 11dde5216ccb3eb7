"""Ranks the best candidates of a search once more, by what is too dear for all of them.

Late interaction compares texts token by token; a speaker who is named in the query is often asked
about. Weights, depth and what each part adds: docs/retrieval.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from annals_storage.domain.asked_roles import asked_role
from annals_storage.domain.asked_times import Asked
from annals_storage.domain.fusion import (
    SPEAKER,
    TIME,
    Bonus,
    Component,
    Neighbors,
    RankedEvent,
    Ranking,
    Weights,
    first_weights,
)
from annals_storage.domain.search import Candidate, ScoredChunk, Signal
from annals_storage.domain.search_parameters import DEFAULTS, SearchParameters

Found = Mapping[Signal, Sequence[ScoredChunk]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the first candidates are compared by, besides the engine's scores.

    `similarities`: MaxSim by chunk id; a chunk that has none counts as it did in the first
    ranking. By event id: `tokens`, its length; `speakers`, 1 where the query names who spoke;
    `times`, 0–1, how close it is to the time the query asks about.
    """

    similarities: Mapping[UUID, float] = field(default_factory=dict)
    tokens: Mapping[UUID, int] = field(default_factory=dict)
    speakers: Mapping[UUID, float] = field(default_factory=dict)
    times: Mapping[UUID, float] = field(default_factory=dict)


class Rescored:
    """The first `depth` events of a ranking in their new order; the others follow in the old."""

    def __init__(self, first: Ranking, head: Ranking, depth: int) -> None:
        self._first, self._head = first, head
        tail = first.events[depth:]
        best_of_tail = tail[0].score if tail else 0.0
        # The others stay below: what they were not compared by might have moved them up.
        self._tail_scale = head.events[-1].score / best_of_tail if best_of_tail > 0 else 0.0
        scale = self._tail_scale
        lowered = [RankedEvent(id_, score * scale, index) for id_, score, index in tail]
        self.events: list[RankedEvent] = [*head.events, *lowered]

    def explain(self, event_id: UUID) -> tuple[Component, ...]:
        """Return the parts of an event's score."""
        if event_id in self._head:
            return self._head.explain(event_id)
        parts = self._first.explain(event_id)
        return tuple(part.weighted(self._tail_scale) for part in parts)


def head_of(first: Ranking, found: Found, depth: int) -> dict[Signal, list[ScoredChunk]]:
    """Return the chunks of the first `depth` events, by signal."""
    head = {event.event_id.int for event in first.events[:depth]}
    return {
        signal: [chunk for chunk in chunks if chunk.event_id.int in head]
        for signal, chunks in found.items()
    }


def compared(
    candidates: Iterable[tuple[UUID, Candidate]],
    *,
    query: str,
    asked: Asked | None,
    similarities: Mapping[UUID, float],
) -> Comparison:
    """Return what (event id, candidate) are compared by for a query that asks for a time."""
    events = dict(candidates)
    role = asked_role(query)
    # Hundreds of events have a handful of authors.
    named = {name for name in {e.author_name for e in events.values()} if is_named(name, query)}
    return Comparison(
        similarities=similarities,
        tokens={event_id: item.token_count for event_id, item in events.items()},
        speakers={
            event_id: 1.0
            for event_id, item in events.items()
            if item.author_name in named or (role and item.role is role)
        },
        times={event_id: asked.closeness(item.event_time) for event_id, item in events.items()}
        if asked
        else {},
    )


def rescored(
    first: Ranking,
    head: Found,
    depth: int,
    comparison: Comparison,
    parameters: SearchParameters = DEFAULTS,
) -> Rescored:
    """Rank the head anew."""
    signals: dict[Signal, Sequence[ScoredChunk]] = dict(head)
    if comparison.similarities:
        signals[Signal.MAXSIM] = list(_with_similarity(first, head, comparison.similarities))
    ranking = Ranking(
        signals,
        weights=_weights(parameters) if comparison.similarities else first_weights(parameters),
        neighbors=Neighbors(
            parameters.neighbor_shares, parameters.neighbor_full_tokens, comparison.tokens
        ),
        bonuses=(
            Bonus(SPEAKER, parameters.speaker_bonus, comparison.speakers),
            Bonus(TIME, parameters.time_bonus, comparison.times),
        ),
    )
    return Rescored(first, ranking, depth)


def _weights(parameters: SearchParameters) -> Weights:
    return {
        Signal.DENSE: parameters.dense_weight,
        Signal.BM25: parameters.bm25_weight,
        Signal.MAXSIM: parameters.maxsim_weight,
    }


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
