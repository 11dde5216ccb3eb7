"""The newest events and what bears on the query; nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview
from annals_context.domain.strategies.snippet import MATCHES_HEADING


@dataclass(frozen=True, slots=True)
class RecentPlusRelevantStrategy:
    """For callers who want no index."""

    name: StrategyName = StrategyName.RECENT_PLUS_RELEVANT
    heading: str = MATCHES_HEADING
    index_details: tuple[DetailLevel, ...] = ()
    extends_recent_window: bool = False

    def overview(self, request: ContextRequest) -> Overview:
        """Say nothing beside the events."""
        del request
        return Overview()
