"""Like snippets, and before them what the conversation was about: its largest topics."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.model import ContextRequest, DetailLevel
from annals_context.domain.options import StrategyName
from annals_context.domain.overview import Overview, cluster_block, summary_block
from annals_context.domain.strategies.snippet import MATCHES_HEADING, SHORT_DETAILS


@dataclass(frozen=True, slots=True)
class ClusteredStrategy:
    """For conversations of which even snippets show a small part."""

    name: StrategyName = StrategyName.CLUSTERED
    heading: str = MATCHES_HEADING
    index_details: tuple[DetailLevel, ...] = SHORT_DETAILS
    extends_recent_window: bool = False

    def overview(self, request: ContextRequest) -> Overview:
        """Summaries and clusters."""
        chars, least = request.options.snippet_chars, request.options.min_cluster_size
        topics = [topic for topic in request.topics if topic.event_count >= least]
        return Overview(
            (summary_block(request.summaries, snippet_chars=chars),),
            (cluster_block(topics, snippet_chars=chars),),
        )
