"""Fuses what the signals found into one ranking of events.

Scores are min-max normalised over each signal's candidates, then summed with weights: on LoCoMo
better than reciprocal rank fusion, which a weak signal drags down. In a conversation the answer
often stands beside the words that were asked for, so every event also gets a part of its
neighbours' scores. Figures are in docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from annals_storage.domain.search import ScoredChunk, Signal

Weights = Mapping[Signal, float]
WEIGHTS: Weights = {Signal.DENSE: 0.4, Signal.BM25: 0.6}
NEIGHBOR_SHARES = (0.3, 0.21, 0.147)
"""Of a neighbour's score, by its distance in events: 0.3 · 0.7^(distance − 1)."""
NEIGHBORS = "neighbors"
BONUS = "speaker"
_OFFSETS = [
    (sign * distance, share)
    for distance, share in enumerate(NEIGHBOR_SHARES, start=1)
    for sign in (-1, 1)
]
_MOST_FROM_NEIGHBORS = 2 * sum(NEIGHBOR_SHARES)


@dataclass(frozen=True, slots=True)
class Component:
    """How one signal saw an event; weight times normalised score is its part of the score.

    `signal` is a Signal's value, NEIGHBORS or BONUS. `rank` counts from 1; 0 for the last two.
    """

    signal: str
    raw_score: float
    normalized_score: float
    weight: float
    rank: int

    def weighted(self, factor: float) -> Component:
        """Return the same part of a score that was multiplied."""
        return replace(self, weight=self.weight * factor)


class RankedEvent(NamedTuple):
    """An event with its score and the chunk that speaks most for it."""

    event_id: UUID
    score: float
    chunk_index: int


class Ranking:
    """The events of all signals, best first; ties by event id, newest first.

    One signal asked alone keeps its order without neighbours: dense its cosines, bm25 its
    normalised scores. Inside, events are numbers: hundreds of candidates are looked up many
    times, and hashing a UUID is slow.
    """

    def __init__(
        self,
        found: Mapping[Signal, Sequence[ScoredChunk]],
        *,
        weights: Weights = WEIGHTS,
        bonuses: Mapping[UUID, float] | None = None,
    ) -> None:
        """`bonuses`: what some events gain, added last; they lend nothing of it."""
        self._numbers: dict[UUID, int] = {}
        self._bonuses = bonuses or {}
        total = sum(weights[signal] for signal in found) or 1.0
        self._tables = [
            _Table(signal, chunks, weights[signal] / total, self._numbers)
            for signal, chunks in found.items()
            if chunks
        ]
        own = [sum(t.parts.get(n, 0.0) for t in self._tables) for n in range(len(self._numbers))]
        self._gained = _from_neighbors(self._tables, own) if len(found) > 1 else []
        totals = [a + b for a, b in zip(own, self._gained, strict=True)] if self._gained else own
        for event_id, bonus in self._bonuses.items():
            totals[self._numbers[event_id]] += bonus
        self._scale = max([1.0, *totals])
        self._is_cosine = list(found) == [Signal.DENSE]
        strongest = self._strongest()
        ranked = [
            self._ranked(event_id, strongest[n], totals[n]) for event_id, n in self._numbers.items()
        ]
        self.events = sorted(ranked, key=_best_first, reverse=True)

    def explain(self, event_id: UUID) -> tuple[Component, ...]:
        """Return the parts of an event's score."""
        number = self._numbers[event_id]
        parts = [t.component(number, self._scale) for t in self._tables if number in t.best]
        if self._gained:
            parts.append(self._neighbors_component(self._gained[number]))
        if bonus := self._bonuses.get(event_id):
            parts.append(Component(BONUS, 1.0, 1.0, bonus / self._scale, rank=0))
        return tuple(parts)

    def _strongest(self) -> dict[int, ScoredChunk]:
        """Return the chunk that speaks most for each event."""
        chunks: dict[int, ScoredChunk] = {}
        parts: dict[int, float] = {}
        for table in self._tables:
            for number, part in table.parts.items():
                if number not in parts or part > parts[number]:
                    parts[number], chunks[number] = part, table.best[number]
        return chunks

    def _ranked(self, event_id: UUID, chunk: ScoredChunk, total: float) -> RankedEvent:
        score = chunk.score if self._is_cosine else total / self._scale
        return RankedEvent(event_id, score, chunk.chunk_index)

    def _neighbors_component(self, gained: float) -> Component:
        return Component(
            signal=NEIGHBORS,
            raw_score=gained,
            normalized_score=gained / _MOST_FROM_NEIGHBORS,
            weight=_MOST_FROM_NEIGHBORS / self._scale,
            rank=0,
        )


class _Table:
    """One signal's best chunk of every event and what it adds to the event's score."""

    def __init__(
        self,
        signal: Signal,
        chunks: Sequence[ScoredChunk],
        weight: float,
        numbers: dict[UUID, int],
    ) -> None:
        self.signal, self.weight = signal, weight
        self.best: dict[int, ScoredChunk] = {}
        for chunk in sorted(chunks, key=_score, reverse=True):
            self.best.setdefault(numbers.setdefault(chunk.event_id, len(numbers)), chunk)
        scores = [chunk.score for chunk in self.best.values()]
        # BM25 has a natural zero: a short list must not turn its last member into "no match".
        self._low = 0.0 if signal is Signal.BM25 or len(scores) == 1 else scores[-1]
        self._span = (scores[0] - self._low) or 1.0
        self.parts = {n: weight * self._normalized(chunk) for n, chunk in self.best.items()}

    def component(self, number: int, scale: float) -> Component:
        chunk = self.best[number]
        return Component(
            signal=self.signal.value,
            raw_score=chunk.score,
            normalized_score=self._normalized(chunk),
            weight=self.weight / scale,
            rank=list(self.best).index(number) + 1,
        )

    def _normalized(self, chunk: ScoredChunk) -> float:
        return (chunk.score - self._low) / self._span


def _from_neighbors(tables: Sequence[_Table], own: Sequence[float]) -> list[float]:
    """Return what each event gains from the candidates beside it in its conversation."""
    conversations: dict[UUID, int] = {}
    places = {
        number: (conversations.setdefault(chunk.conversation_id, len(conversations)), chunk.seq)
        for table in tables
        for number, chunk in table.best.items()
    }
    scores = {place: own[number] for number, place in places.items()}
    gained = [0.0] * len(own)
    for number, (conversation, seq) in places.items():
        for offset, share in _OFFSETS:
            gained[number] += share * scores.get((conversation, seq + offset), 0.0)
    return gained


def _score(chunk: ScoredChunk) -> float:
    return chunk.score


def _best_first(event: RankedEvent) -> tuple[float, int]:
    return event.score, event.event_id.int
