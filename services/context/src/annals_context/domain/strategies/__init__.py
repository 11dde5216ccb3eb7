"""How a context is chosen: one module for each strategy."""

from __future__ import annotations

from annals_context.domain.model import ContextRequest
from annals_context.domain.options import StrategyName
from annals_context.domain.strategies.base import Strategy
from annals_context.domain.strategies.clustered import ClusteredStrategy
from annals_context.domain.strategies.full import FullStrategy
from annals_context.domain.strategies.hierarchical import HierarchicalStrategy
from annals_context.domain.strategies.recent_plus_relevant import RecentPlusRelevantStrategy
from annals_context.domain.strategies.snippet import SnippetStrategy

FULL_UP_TO_EVENTS = 50
SNIPPET_UP_TO_EVENTS = 500
CLUSTERED_UP_TO_EVENTS = 5_000
_STRATEGIES: dict[StrategyName, Strategy] = {
    StrategyName.FULL: FullStrategy(),
    StrategyName.SNIPPET: SnippetStrategy(),
    StrategyName.CLUSTERED: ClusteredStrategy(),
    StrategyName.HIERARCHICAL: HierarchicalStrategy(),
    StrategyName.RECENT_PLUS_RELEVANT: RecentPlusRelevantStrategy(),
}


def choose(n_events_in_scope: int, requested: StrategyName) -> StrategyName:
    """Return the strategy asked for; ADAPTIVE goes by how many events there are."""
    if requested is not StrategyName.ADAPTIVE:
        return requested
    if n_events_in_scope <= FULL_UP_TO_EVENTS:
        return StrategyName.FULL
    if n_events_in_scope <= SNIPPET_UP_TO_EVENTS:
        return StrategyName.SNIPPET
    if n_events_in_scope <= CLUSTERED_UP_TO_EVENTS:
        return StrategyName.CLUSTERED
    return StrategyName.HIERARCHICAL


def strategy_for(request: ContextRequest) -> Strategy:
    """Return the strategy of a request: snippets where what it wanted to show is not there."""
    name = choose(request.total_events, request.options.strategy)
    return _STRATEGIES[name if has_material(request, name) else StrategyName.SNIPPET]


def has_material(request: ContextRequest, name: StrategyName) -> bool:
    """Tell whether there is anything to cluster or to divide into periods."""
    match name:
        case StrategyName.CLUSTERED:
            least = request.options.min_cluster_size
            return any(topic.event_count >= least for topic in request.topics)
        case StrategyName.HIERARCHICAL:
            return any(period.event_count for period in request.periods)
        case _:
            return True


__all__ = ["FULL_UP_TO_EVENTS", "Strategy", "choose", "has_material", "strategy_for"]
