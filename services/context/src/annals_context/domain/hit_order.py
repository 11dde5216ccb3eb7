"""Which hits come first, and how many belong together. The numbers here were not tuned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise

from annals_context.domain.model import Hit

LEAST_SHARE = 0.25
"""Of the best score, what a hit must have to be shown."""
RECENT_SHARE = 0.5
"""The same, where the newest come first."""
RECENCY_BONUS = 0.3
"""What the newest hit gains over the oldest, where the best has a score of 1."""
GAP_SHARE = 0.2
"""Of the best score, how far two neighbours must be apart to tell what belongs from the rest."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class SnippetStrategy(StrEnum):
    """Which hits come first."""

    RELEVANCE = "relevance"
    RECENCY = "recency"
    MIXED = "mixed"


def in_order(hits: Sequence[Hit], strategy: SnippetStrategy) -> list[Hit]:
    """Return the hits worth showing, the first ones first. `hits` come best first."""
    least = RECENT_SHARE if strategy is SnippetStrategy.RECENCY else LEAST_SHARE
    kept = worth_showing(hits, least)
    newest = sorted(kept, key=_moment, reverse=True)
    match strategy:
        case SnippetStrategy.RELEVANCE:
            return kept
        case SnippetStrategy.RECENCY:
            return newest
        case SnippetStrategy.MIXED:
            return _mixed(kept, newest)


def worth_showing(hits: Sequence[Hit], least_share: float = LEAST_SHARE) -> list[Hit]:
    """Return the hits whose score is at least a share of the best."""
    best = max((hit.score for hit in hits), default=0.0)
    return [hit for hit in hits if hit.score >= least_share * best]


def auto_limit(scores: Sequence[float]) -> int:
    """Return how many of the scores, best first, belong together: up to the widest gap, if it is
    wide, else all that are worth showing.
    """
    best = max(scores, default=0.0)
    worth = [score for score in scores if score >= LEAST_SHARE * best]
    gaps = [before - after for before, after in pairwise(worth)]
    widest = max(gaps, default=0.0)
    if widest <= 0 or widest < GAP_SHARE * best:
        return len(worth)
    return gaps.index(widest) + 1


def _mixed(hits: Sequence[Hit], newest: Sequence[Hit]) -> list[Hit]:
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    steps = max(1, len(newest) - 1)
    bonus = {id(hit): RECENCY_BONUS * (1 - i / steps) for i, hit in enumerate(newest)}
    return sorted(hits, key=lambda hit: hit.score / best + bonus[id(hit)], reverse=True)


def _moment(hit: Hit) -> tuple[datetime, int]:
    moment = hit.event.event_time or _LONG_AGO
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC), hit.event.seq)
