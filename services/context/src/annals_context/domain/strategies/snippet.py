"""The newest events in full, relevant ones as far as they fit, others as snippets."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import DetailLevel, StrategyName


@dataclass(frozen=True, slots=True)
class SnippetStrategy:
    """For conversations too long to show."""

    name: StrategyName = StrategyName.SNIPPET
    heading: str = "Historical Matches (retrieve with get_message_by_id):"
    index_details: tuple[DetailLevel, ...] = (DetailLevel.SNIPPET, DetailLevel.STUB)
    extends_recent_window: bool = False
