"""Returns the parts of events that bear on a query."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from annals_context.commands.retrieving import Retrieval
from annals_context.domain.hit_order import SnippetStrategy, in_order
from annals_context.domain.passage_fitting import Fitted, PassageRequest, fit_passages
from annals_context.ports import Caller, RetrievalScope

TOKENS_PER_HIT = 20
LEAST_HITS = 20
MOST_HITS = 200
HITS_WITH_NEIGHBOURS = 20
"""The events beside the first hits are read; the others could hardly be shown."""


@dataclass(frozen=True, slots=True)
class SnippetsWanted:
    """A validated request."""

    query: str
    max_tokens: int
    strategy: SnippetStrategy
    with_neighbours: bool
    scope: RetrievalScope
    model: str


@dataclass(frozen=True, slots=True)
class SnippetsFound:
    """Snippets that fit, and why they may be fewer than there are."""

    fitted: Fitted
    degraded: tuple[str, ...]


class GetRelevantSnippets:
    """Searches, then fits what was found and what stands beside it."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval

    async def __call__(self, caller: Caller, wanted: SnippetsWanted) -> SnippetsFound:
        """Raises BudgetTooSmallError and what storage raises."""
        limit = min(MOST_HITS, max(LEAST_HITS, wanted.max_tokens // TOKENS_PER_HIT))
        found = await self._retrieval.search(caller, wanted.query, wanted.scope, limit=limit)
        hits = in_order(found.hits, wanted.strategy)
        first = hits[:HITS_WITH_NEIGHBOURS] if wanted.with_neighbours else []
        request = PassageRequest(
            hits=hits,
            query=wanted.query,
            counter=self._retrieval.counter_for(wanted.model),
            max_tokens=wanted.max_tokens,
            neighbours=await self._retrieval.neighbours(caller, first),
            titles=None if len(wanted.scope.conversation_ids) == 1 else {},
        )
        fitted = await asyncio.to_thread(fit_passages, request)
        return SnippetsFound(fitted, found.degraded)
