"""Returns whole events that bear on a query, as many as belong together and fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from annals_common.errors import BudgetTooSmallError
from annals_context.commands.retrieving import Retrieval
from annals_context.domain.counting import Counter, available_for, margin_tokens, surely_exceeds
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
        return await asyncio.to_thread(fitted, chosen, counter, wanted.max_tokens, found.degraded)


def fitted(
    hits: Sequence[Hit], counter: Counter, max_tokens: int, degraded: tuple[str, ...]
) -> Retrieved:
    """Return the events that fit, each in its turn. Raises BudgetTooSmallError when none does."""
    margin = margin_tokens(counter, max_tokens)
    remaining, kept, omitted = max_tokens - margin, [], []
    for hit in hits:
        tokens = _tokens_within(counter, hit, remaining)
        if tokens is None:
            omitted.append(hit)
            continue
        kept.append((hit, tokens))
        remaining -= tokens
    if omitted and not kept:
        minimum = available_for(counter, _least_tokens(counter, omitted))
        raise BudgetTooSmallError(budget=max_tokens, minimum=minimum, field="max_tokens")
    info = CounterInfo(counter.encoding, counter.exact, margin)
    return Retrieved(tuple(kept), tuple(omitted), info, degraded)


def _tokens_within(counter: Counter, hit: Hit, limit: int) -> int | None:
    """Return the tokens of an event, or None when they are more; giants are not read to the end."""
    if surely_exceeds(counter, hit.event.body, limit):
        return None
    tokens = counter.count(hit.event.body)
    return tokens if tokens <= limit else None


def _least_tokens(counter: Counter, hits: Sequence[Hit]) -> int:
    """Return the tokens of the event that takes the fewest."""
    shortest, *others = sorted(hits, key=lambda hit: len(hit.event.body))
    least = counter.count(shortest.event.body)
    for hit in others:
        tokens = _tokens_within(counter, hit, least)
        least = least if tokens is None else tokens
    return least
