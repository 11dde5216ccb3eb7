"""Every event, as far as the budget reaches; what does not fit is degraded."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview


@dataclass(frozen=True, slots=True)
class FullStrategy:
    """For small conversations."""

    name: StrategyName = StrategyName.FULL
    heading: str = "Historical Context (retrieve with get_message_by_id):"
    index_details: tuple[DetailLevel, ...] = tuple(DetailLevel)
    extends_recent_window: bool = True

    def overview(self, request: ContextRequest) -> Overview:
        """Say nothing: the events speak for themselves."""
        del request
        return Overview()
