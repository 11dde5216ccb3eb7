"""How a context is chosen: one module for each strategy."""

from __future__ import annotations

from annals_context.domain.model import StrategyName
from annals_context.domain.strategies.base import Strategy
from annals_context.domain.strategies.full import FullStrategy
from annals_context.domain.strategies.snippet import SnippetStrategy

FULL_UP_TO_EVENTS = 50
_STRATEGIES: dict[StrategyName, Strategy] = {
    StrategyName.FULL: FullStrategy(),
    StrategyName.SNIPPET: SnippetStrategy(),
}


def choose(n_events_in_scope: int, requested: StrategyName) -> Strategy:
    """Return the strategy asked for; ADAPTIVE is full up to 50 events and snippets above."""
    if requested is not StrategyName.ADAPTIVE:
        return _STRATEGIES[requested]
    is_small = n_events_in_scope <= FULL_UP_TO_EVENTS
    return _STRATEGIES[StrategyName.FULL if is_small else StrategyName.SNIPPET]


__all__ = ["FULL_UP_TO_EVENTS", "Strategy", "choose"]
