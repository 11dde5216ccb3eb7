"""Moves hits down that say what a hit above them says already."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from annals_storage.domain.diversity import Choice, diversified
from annals_storage.domain.event_search import Search
from annals_storage.domain.fusion import Component, RankedEvent
from annals_storage.domain.hit_groups import Explain, Ranked
from annals_storage.ports.search import RescoringStore

CANDIDATES_PER_HIT = 3
MAX_CANDIDATES = 1_000
DIVERSITY = "diversity"


class Diversify:
    """Orders the best candidates anew; the others follow as before."""

    def __init__(self, rescoring: RescoringStore) -> None:
        self._rescoring = rescoring

    async def __call__(self, search: Search, ranked: Ranked) -> Ranked:
        """Return what was found in the order the search asks for.

        Raises DependencyUnavailableError when PostgreSQL does not answer.
        """
        if not search.diversity or not ranked.events:
            return ranked
        heads, members = ranked.heads_first()
        depth = min(search.limit * CANDIDATES_PER_HIT, MAX_CANDIDATES)
        best, others = heads[:depth], heads[depth:]
        chunk_ids = [ranked.chunk(event).chunk_id for event in best]
        vectors = await self._rescoring.get_embeddings(search.scope.tenant_id, chunk_ids)
        scores = [event.score for event in best]
        choices = await asyncio.to_thread(
            lambda: diversified(scores, _stacked(chunk_ids, vectors), search.diversity)
        )
        events = [*(best[choice.place] for choice in choices), *others, *members]
        return ranked.reordered(events, _explained(ranked.explain, best, choices))


def _stacked(
    chunk_ids: Sequence[UUID], vectors: dict[UUID, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the vectors in order, at length 1; zeros for chunks that are gone."""
    dimensions = max((len(vector) for vector in vectors.values()), default=1)
    stacked = np.zeros((len(chunk_ids), dimensions), np.float32)
    for row, chunk_id in enumerate(chunk_ids):
        vector = vectors.get(chunk_id)
        if vector is not None and len(vector) == dimensions:
            stacked[row] = vector / (np.linalg.norm(vector) or 1.0)
    return stacked


def _explained(explain: Explain, best: Sequence[RankedEvent], choices: Sequence[Choice]) -> Explain:
    moved = {best[choice.place].event_id: choice for choice in choices}

    def explain_too(event_id: UUID) -> tuple[Component, ...]:
        parts = explain(event_id)
        choice = moved.get(event_id)
        return parts if choice is None else (*parts, _component(choice))

    return explain_too


def _component(choice: Choice) -> Component:
    """Return how a candidate was placed. It weighs nothing: the order changes, not the score."""
    return Component(
        signal=DIVERSITY,
        raw_score=choice.similarity,
        normalized_score=min(max(choice.similarity, 0.0), 1.0),
        weight=0.0,
        rank=choice.place + 1,
    )
