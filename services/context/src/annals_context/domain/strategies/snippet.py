"""The newest events in full, relevant ones as far as they fit, others as snippets."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview, summary_block

MATCHES_HEADING = "Historical Matches (retrieve with get_message_by_id):"
SHORT_DETAILS = (DetailLevel.SNIPPET, DetailLevel.STUB)


@dataclass(frozen=True, slots=True)
class SnippetStrategy:
    """For conversations too long to show."""

    name: StrategyName = StrategyName.SNIPPET
    heading: str = MATCHES_HEADING
    index_details: tuple[DetailLevel, ...] = SHORT_DETAILS
    extends_recent_window: bool = False

    def overview(self, request: ContextRequest) -> Overview:
        """Summaries alone."""
        chars = request.options.snippet_chars
        return Overview((summary_block(request.summaries, snippet_chars=chars),))
