"""Fuses what the signals found into one ranking of events.

Scores are min-max normalised over each signal's candidates, then summed with weights: on LoCoMo
better than reciprocal rank fusion, which a weak signal drags down. In a conversation the answer
often stands beside the words that were asked for, so every event also gets a part of its
neighbours' scores. Figures are in docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from annals_storage.domain.search import ScoredChunk, Signal
from annals_storage.domain.search_parameters import DEFAULTS, SearchParameters

Weights = Mapping[Signal, float]
NEIGHBORS = "neighbors"
SPEAKER = "speaker"
TIME = "time"


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

    def offsets(self) -> list[tuple[int, float]]:
        """Return (places away, share) of all neighbours."""
        shares = enumerate(self.shares, start=1)
        return [(sign * distance, share) for distance, share in shares for sign in (-1, 1)]

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
        self._numbers: dict[UUID, int] = {}
        self._bonuses = [bonus for bonus in bonuses if bonus.weight]
        total = sum(weights[signal] for signal in found) or 1.0
        self._tables = [
            _Table(signal, chunks, weights[signal] / total, self._numbers)
            for signal, chunks in found.items()
            if chunks
        ]
        own = [sum(t.parts.get(n, 0.0) for t in self._tables) for n in range(len(self._numbers))]
        lends = len(found) > 1 and self._neighbors.most > 0
        self._gained = self._from_neighbors(own) if lends else []
        totals = [a + b for a, b in zip(own, self._gained, strict=True)] if self._gained else own
        for bonus in self._bonuses:
            for event_id, closeness in bonus.closeness.items():
                totals[self._numbers[event_id]] += bonus.weight * closeness
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
        parts += [
            Component(bonus.signal, closeness, closeness, bonus.weight / self._scale, rank=0)
            for bonus in self._bonuses
            if (closeness := bonus.closeness.get(event_id))
        ]
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
            normalized_score=gained / self._neighbors.most,
            weight=self._neighbors.most / self._scale,
            rank=0,
        )

    def _from_neighbors(self, own: Sequence[float]) -> list[float]:
        """Return what each event gains from the candidates beside it in its conversation."""
        conversations: dict[UUID, int] = {}
        places = {
            number: (conversations.setdefault(chunk.conversation_id, len(conversations)), chunk.seq)
            for table in self._tables
            for number, chunk in table.best.items()
        }
        scores = {place: own[number] for number, place in places.items()}
        offsets = self._neighbors.offsets()
        gained = [0.0] * len(own)
        for event_id, number in self._numbers.items():
            conversation, seq = places[number]
            lent = (share * scores.get((conversation, seq + by), 0.0) for by, share in offsets)
            gained[number] = sum(lent) * self._neighbors.part_for(event_id)
        return gained


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


def _score(chunk: ScoredChunk) -> float:
    return chunk.score


def _best_first(event: RankedEvent) -> tuple[float, int]:
    return event.score, event.event_id.int
