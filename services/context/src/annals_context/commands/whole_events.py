"""Returns whole events that bear on a query, as many as belong together and fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from annals_common.errors import BudgetTooSmallError
from annals_context.commands.retrieving import Retrieval
from annals_context.domain.counting import Counter, available_for, margin_tokens
from annals_context.domain.hit_order import auto_limit
from annals_context.domain.model import CounterInfo, Hit
from annals_context.ports import Caller, RetrievalScope


@dataclass(frozen=True, slots=True)
class EventsWanted:
    """A validated request."""

    query: str
    most_events: int
    max_tokens: int
    scope: RetrievalScope
    model: str


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Whole events, best first, and what each costs. `omitted` belong here and did not fit."""

    hits: tuple[tuple[Hit, int], ...]
    omitted: tuple[Hit, ...]
    counter: CounterInfo
    degraded: tuple[str, ...]


class SearchAndRetrieve:
    """Searches, cuts the hits where their scores tell, and fits them."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval

    async def __call__(self, caller: Caller, wanted: EventsWanted) -> Retrieved:
        """Raises BudgetTooSmallError when no event fits, and what storage raises."""
        # One more than asked for shows whether a gap follows the last one.
        limit = wanted.most_events + 1
        found = await self._retrieval.search(caller, wanted.query, wanted.scope, limit=limit)
        count = min(wanted.most_events, auto_limit([hit.score for hit in found.hits]))
        counter = self._retrieval.counter_for(wanted.model)
        chosen = found.hits[:count]
        priced = await asyncio.to_thread(_priced, chosen, counter)
        return fitted(priced, counter, wanted.max_tokens, found.degraded)


def _priced(hits: Sequence[Hit], counter: Counter) -> list[tuple[Hit, int]]:
    return [(hit, counter.count(hit.event.body)) for hit in hits]


def fitted(
    priced: Sequence[tuple[Hit, int]], counter: Counter, max_tokens: int, degraded: tuple[str, ...]
) -> Retrieved:
    """Return the events that fit, each in its turn. Raises BudgetTooSmallError when none does."""
    margin = margin_tokens(counter, max_tokens)
    remaining, kept, omitted = max_tokens - margin, [], []
    for hit, tokens in priced:
        if tokens > remaining:
            omitted.append(hit)
            continue
        kept.append((hit, tokens))
        remaining -= tokens
    if omitted and not kept:
        least_tokens = min(tokens for _, tokens in priced)
        minimum = available_for(counter, least_tokens)
        raise BudgetTooSmallError(budget=max_tokens, minimum=minimum, field="max_tokens")
    info = CounterInfo(counter.encoding, counter.exact, margin)
    return Retrieved(tuple(kept), tuple(omitted), info, degraded)
