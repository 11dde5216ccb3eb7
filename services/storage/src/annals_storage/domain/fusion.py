"""Fuses what the signals found into one ranking of events.

Scores are min-max normalised over each signal's candidates, then summed with weights. Measured
on LoCoMo against reciprocal rank fusion, which a weak signal drags down (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from annals_storage.domain.search import ScoredChunk, Signal

WEIGHTS: Mapping[Signal, float] = {Signal.DENSE: 0.4, Signal.BM25: 0.6}


@dataclass(frozen=True, slots=True)
class Component:
    """How one signal saw an event. `rank` counts from 1."""

    signal: Signal
    raw_score: float
    normalized_score: float
    weight: float
    rank: int


@dataclass(frozen=True, slots=True)
class FusedEvent:
    """An event with its score and the chunk that speaks most for it."""

    event_id: UUID
    score: float
    chunk_index: int
    components: tuple[Component, ...]


def fuse(found: Mapping[Signal, Sequence[ScoredChunk]]) -> list[FusedEvent]:
    """Return the events of all signals, best first; ties by event id, newest first.

    One signal alone keeps its own scores for dense (cosine), normalised ones for bm25.
    """
    signals = [signal for signal, chunks in found.items() if chunks]
    total = sum(WEIGHTS[signal] for signal in found) or 1.0
    by_event: dict[UUID, list[tuple[Component, ScoredChunk]]] = {}
    for signal in signals:
        for component, chunk in _components(signal, found[signal], WEIGHTS[signal] / total):
            by_event.setdefault(chunk.event_id, []).append((component, chunk))
    raw = list(found) == [Signal.DENSE]
    fused = [_fused(event_id, parts, raw=raw) for event_id, parts in by_event.items()]
    return sorted(fused, key=lambda event: (event.score, event.event_id), reverse=True)


def _components(
    signal: Signal, chunks: Sequence[ScoredChunk], weight: float
) -> list[tuple[Component, ScoredChunk]]:
    best = _best_per_event(chunks)
    scores = [chunk.score for chunk in best]
    low, high = _floor(signal, scores), max(scores)
    span = (high - low) or 1.0
    return [
        (Component(signal, c.score, (c.score - low) / span, weight, rank), c)
        for rank, c in enumerate(best, start=1)
    ]


def _floor(signal: Signal, scores: Sequence[float]) -> float:
    # BM25 has a natural zero: a candidate list that happens to be short must not turn its
    # weakest member into "no match".
    return 0.0 if signal is Signal.BM25 or len(scores) == 1 else min(scores)


def _best_per_event(chunks: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    best: dict[UUID, ScoredChunk] = {}
    for chunk in chunks:
        if chunk.event_id not in best or chunk.score > best[chunk.event_id].score:
            best[chunk.event_id] = chunk
    return sorted(best.values(), key=lambda chunk: chunk.score, reverse=True)


def _fused(
    event_id: UUID, parts: Sequence[tuple[Component, ScoredChunk]], *, raw: bool
) -> FusedEvent:
    strongest = max(parts, key=lambda part: part[0].weight * part[0].normalized_score)
    score = parts[0][0].raw_score if raw else sum(c.weight * c.normalized_score for c, _ in parts)
    components = tuple(component for component, _ in parts)
    return FusedEvent(event_id, score, strongest[1].chunk_index, components)
