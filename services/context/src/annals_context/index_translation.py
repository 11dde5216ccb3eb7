"""What an agent or a request says of the index, from the APIs to the domain."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import resources_pb2 as pb
from annals_common.index_bounds import INDEX_BOUNDS
from annals_context.domain.options import IndexChoices, SnippetStrategy, StrategyName

SNIPPET_STRATEGIES: dict[int, SnippetStrategy | None] = {
    pb.SNIPPET_STRATEGY_UNSPECIFIED: None,
    pb.SNIPPET_STRATEGY_FIRST: SnippetStrategy.FIRST,
    pb.SNIPPET_STRATEGY_SEMANTIC_CORE: SnippetStrategy.SEMANTIC_CORE,
    pb.SNIPPET_STRATEGY_SUMMARY: SnippetStrategy.SUMMARY,
}
_STRATEGIES: dict[int, StrategyName] = {
    pb.INDEX_STRATEGY_ADAPTIVE: StrategyName.ADAPTIVE,
    pb.INDEX_STRATEGY_FULL: StrategyName.FULL,
    pb.INDEX_STRATEGY_SNIPPET: StrategyName.SNIPPET,
    pb.INDEX_STRATEGY_CLUSTERED: StrategyName.CLUSTERED,
    pb.INDEX_STRATEGY_HIERARCHICAL: StrategyName.HIERARCHICAL,
    pb.INDEX_STRATEGY_RECENT_PLUS_RELEVANT: StrategyName.RECENT_PLUS_RELEVANT,
}
_NAMES = tuple(
    name for name in (*INDEX_BOUNDS, "include_tool_calls") if name in IndexChoices.__slots__
)
"""Fields that are taken as they are; what is left out is for those who cluster."""


def given_choices(message: Any) -> dict[str, Any]:
    """Return the numbers and switches a message has that the index knows, by name."""
    known = (name for name in _NAMES if name in message.DESCRIPTOR.fields_by_name)
    return {name: getattr(message, name) for name in known if message.HasField(name)}


def choices_from(config: pb.IndexConfig) -> IndexChoices:
    """Return an agent's choices; what a newer storage knows beyond them is left out."""
    return IndexChoices(
        strategy=_STRATEGIES.get(config.strategy),
        snippet_strategy=SNIPPET_STRATEGIES.get(config.snippet_strategy),
        **given_choices(config),
    )
