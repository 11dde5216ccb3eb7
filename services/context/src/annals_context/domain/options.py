"""How an index is built: what may be chosen, and what it is when nobody chooses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum


class StrategyName(StrEnum):
    """How a context is chosen."""

    ADAPTIVE = "adaptive"
    FULL = "full"
    SNIPPET = "snippet"
    CLUSTERED = "clustered"
    HIERARCHICAL = "hierarchical"
    RECENT_PLUS_RELEVANT = "recent_plus_relevant"


class SnippetStrategy(StrEnum):
    """Which part of a long event its snippet shows.

    FIRST: its beginning; of a found event, the sentence that speaks most of the query and what
    follows. SEMANTIC_CORE: the sentence that is most like the whole, of a found event like its
    best chunk, and what follows. SUMMARY: the sentences most like the whole, in their order.
    """

    FIRST = "first"
    SEMANTIC_CORE = "semantic_core"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """Every choice, made.

    `max_index_tokens` bounds topics, periods and older events beside the relevant together;
    `summary_ratio` is the part of the budget that summaries may take. Topics of fewer than
    `min_cluster_size` events are left out. Tool results of more than `chunk_threshold_tokens` are
    never shown whole, save the newest event.
    """

    strategy: StrategyName = StrategyName.ADAPTIVE
    recent_events: int = 10
    snippet_chars: int = 100
    snippet_strategy: SnippetStrategy = SnippetStrategy.FIRST
    max_index_tokens: int = 10_000
    min_cluster_size: int = 3
    include_tool_calls: bool = True
    summary_ratio: float = 0.3
    chunk_threshold_tokens: int = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChoices:
    """What somebody chose; None: left to others."""

    strategy: StrategyName | None = None
    recent_events: int | None = None
    snippet_chars: int | None = None
    snippet_strategy: SnippetStrategy | None = None
    max_index_tokens: int | None = None
    min_cluster_size: int | None = None
    include_tool_calls: bool | None = None
    summary_ratio: float | None = None
    chunk_threshold_tokens: int | None = None


def resolve(*choices: IndexChoices) -> IndexOptions:
    """Return the options; whoever comes first and chose decides, else the default does."""
    chosen = {}
    for field in fields(IndexChoices):
        given = (getattr(one, field.name) for one in choices)
        value = next((value for value in given if value is not None), None)
        if value is not None:
            chosen[field.name] = value
    return IndexOptions(**chosen)
