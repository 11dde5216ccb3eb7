"""Fuses what the signals found into one ranking of events.

Scores are min-max normalised over each signal's candidates, then summed with weights: on LoCoMo
better than reciprocal rank fusion, which a weak signal drags down. In a conversation the answer
often stands beside the words that were asked for, so every event also gets a part of its
neighbours' scores. Figures are in docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from annals_storage.domain.search import ScoredChunk, Signal
from annals_storage.domain.search_parameters import DEFAULTS, SearchParameters

Weights = Mapping[Signal, float]
NEIGHBORS = "neighbors"
SPEAKER = "speaker"
TIME = "time"
_SCORE = attrgetter("score")


@dataclass(frozen=True, slots=True)
class Neighbors:
    """What events gain from those beside them.

    `shares`: of a neighbour's score, by distance. `tokens`: the length of events; who is longer
    than `full_tokens` gains less, in proportion (0: all gain alike).
    """

    shares: tuple[float, ...]
    full_tokens: int = 0
    tokens: Mapping[UUID, int] = field(default_factory=dict)

    @property
    def most(self) -> float:
        """What an event gains between neighbours of the greatest score."""
        return 2 * sum(self.shares)

    def lent(self, scores: Mapping[int, float]) -> dict[int, float]:
        """Return what each position gains of the scores at others, where that is anything."""
        lent: dict[int, float] = {}
        positions, reach = sorted(scores), len(self.shares)
        for place, earlier in enumerate(positions, start=1):
            for later in positions[place : place + reach]:
                if later - earlier > reach:
                    break
                share = self.shares[later - earlier - 1]
                lent[earlier] = lent.get(earlier, 0.0) + share * scores[later]
                lent[later] = lent.get(later, 0.0) + share * scores[earlier]
        return lent

    def part_for(self, event_id: UUID) -> float:
        """Return how much of it an event of its length gains, 0–1."""
        tokens = self.tokens.get(event_id, 0)
        return self.full_tokens / tokens if 0 < self.full_tokens < tokens else 1.0


class Bonus(NamedTuple):
    """What some events gain, added last; they lend nothing of it.

    `signal`: its name in a score's parts. `closeness`: 0–1 by event, times `weight`.
    """

    signal: str
    weight: float
    closeness: Mapping[UUID, float]


def first_weights(parameters: SearchParameters) -> Weights:
    """Return the weights of the first stage."""
    return {
        Signal.DENSE: parameters.first_dense_weight,
        Signal.BM25: parameters.first_bm25_weight,
    }


@dataclass(frozen=True, slots=True)
class Component:
    """How one signal saw an event; weight times normalised score is its part of the score.

    `signal` is a Signal's value, NEIGHBORS, SPEAKER or TIME. `rank` counts from 1; 0 for those
    that are no Signal.
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
        weights: Weights | None = None,
        neighbors: Neighbors | None = None,
        bonuses: Sequence[Bonus] = (),
    ) -> None:
        """Without `weights` and `neighbors`: the first stage with the default parameters."""
        weights = weights or first_weights(DEFAULTS)
        self._neighbors = neighbors or Neighbors(DEFAULTS.neighbor_shares)
        self._numbers: dict[int, int] = {}
        self._bonuses = [bonus for bonus in bonuses if bonus.weight]
        total = sum(weights[signal] for signal in found) or 1.0
        self._tables = [
            _Table(signal, chunks, weights[signal] / total, self._numbers)
            for signal, chunks in found.items()
            if chunks
        ]
        strongest, own = self._own()
        lends = len(found) > 1 and self._neighbors.most > 0
        self._gained = self._from_neighbors(strongest, own) if lends else []
        totals = [a + b for a, b in zip(own, self._gained, strict=True)] if self._gained else own
        for bonus in self._bonuses:
            for event_id, closeness in bonus.closeness.items():
                totals[self._numbers[event_id.int]] += bonus.weight * closeness
        self._scale = max([1.0, *totals])
        is_cosine = list(found) == [Signal.DENSE]
        scores = (
            [chunk.score for chunk in strongest]
            if is_cosine
            else [total / self._scale for total in totals]
        )
        best_first = sorted(zip(scores, self._numbers, strongest, strict=True), reverse=True)
        self.events = [
            RankedEvent(chunk.event_id, score, chunk.chunk_index) for score, _, chunk in best_first
        ]

    def __contains__(self, event_id: UUID) -> bool:
        """Whether the event is one of those ranked."""
        return event_id.int in self._numbers

    def explain(self, event_id: UUID) -> tuple[Component, ...]:
        """Return the parts of an event's score."""
        number = self._numbers[event_id.int]
        parts = [t.component(number, self._scale) for t in self._tables if number in t.best]
        if self._gained:
            parts.append(self._neighbors_component(self._gained[number]))
        parts += [
            Component(bonus.signal, closeness, closeness, bonus.weight / self._scale, rank=0)
            for bonus in self._bonuses
            if (closeness := bonus.closeness.get(event_id))
        ]
        return tuple(parts)

    def _own(self) -> tuple[list[ScoredChunk], list[float]]:
        """Return by number the chunk that speaks most for each event, and the sum of its parts."""
        chunks: dict[int, ScoredChunk] = {}
        greatest: dict[int, float] = {}
        own = [0.0] * len(self._numbers)
        for table in self._tables:
            for number, part in table.parts.items():
                own[number] += part
                if number not in greatest or part > greatest[number]:
                    greatest[number], chunks[number] = part, table.best[number]
        return [chunks[number] for number in range(len(own))], own

    def _neighbors_component(self, gained: float) -> Component:
        return Component(
            signal=NEIGHBORS,
            raw_score=gained,
            normalized_score=gained / self._neighbors.most,
            weight=self._neighbors.most / self._scale,
            rank=0,
        )

    def _from_neighbors(
        self, strongest: Sequence[ScoredChunk], own: Sequence[float]
    ) -> list[float]:
        """Return what each event gains from the candidates beside it in its conversation."""
        rows: dict[int, dict[int, float]] = {}
        for chunk, score in zip(strongest, own, strict=True):
            rows.setdefault(chunk.conversation_id.int, {})[chunk.seq] = score
        lent = {conversation: self._neighbors.lent(row) for conversation, row in rows.items()}
        gained = [lent[chunk.conversation_id.int].get(chunk.seq, 0.0) for chunk in strongest]
        return [
            each * self._neighbors.part_for(chunk.event_id) if each else 0.0
            for each, chunk in zip(gained, strongest, strict=True)
        ]


class _Table:
    """One signal's best chunk of every event and what it adds to the event's score."""

    def __init__(
        self,
        signal: Signal,
        chunks: Sequence[ScoredChunk],
        weight: float,
        numbers: dict[int, int],
    ) -> None:
        self.signal, self.weight = signal, weight
        self.best: dict[int, ScoredChunk] = {}
        for chunk in sorted(chunks, key=_SCORE, reverse=True):
            self.best.setdefault(numbers.setdefault(chunk.event_id.int, len(numbers)), chunk)
        scores = [chunk.score for chunk in self.best.values()]
        # BM25 has a natural zero: a short list must not turn its last member into "no match".
        self._low = 0.0 if signal is Signal.BM25 or len(scores) == 1 else scores[-1]
        self._span = (scores[0] - self._low) or 1.0
        low, span = self._low, self._span
        self.parts = {n: weight * ((c.score - low) / span) for n, c in self.best.items()}

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
