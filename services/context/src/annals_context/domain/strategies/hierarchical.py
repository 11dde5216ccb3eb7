"""Like snippets, and before them a table of contents: periods, and the topics of each."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview, period_blocks, summary_block
from annals_context.domain.strategies.snippet import MATCHES_HEADING, SHORT_DETAILS


@dataclass(frozen=True, slots=True)
class HierarchicalStrategy:
    """For huge conversations."""

    name: StrategyName = StrategyName.HIERARCHICAL
    heading: str = MATCHES_HEADING
    index_details: tuple[DetailLevel, ...] = SHORT_DETAILS
    extends_recent_window: bool = False

    def overview(self, request: ContextRequest) -> Overview:
        """Summaries, periods, their topics and how to move among them."""
        chars = request.options.snippet_chars
        return Overview(
            (summary_block(request.summaries, snippet_chars=chars),),
            period_blocks(request.periods),
        )
