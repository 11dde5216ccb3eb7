"""Who may take how much of a budget.

What must be there comes first. Then every part has a share, and what one leaves flows on to the
next: recent events, what bears on the query most, summaries and topics, what bears on it less,
older events. Summaries and topics stand behind whatever the search found with confidence, and
before what it merely found; who asked for them by name gets some of them in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annals_context.domain.options import IndexOptions, StrategyName
from annals_context.domain.planning import Candidate

RECENT_SHARE = 0.5
STRONG_SCORE_SHARE = 0.4
"""A hit is strong when its score is at least this part of the best one's."""
ASKED_FOR_SHARE = 0.15
"""What summaries and topics get however much was found, where their strategy was asked for by
name.
"""
_WITH_INDEX = frozenset({StrategyName.CLUSTERED, StrategyName.HIERARCHICAL})


@dataclass(frozen=True, slots=True)
class Allocation:
    """Tokens each part may take at most, `overview_floor` at least where there is enough.

    `index` is for topics, periods and older events together.
    """

    recent: int
    overview_floor: int
    summaries: int
    index: int


def allocate(tokens: int, options: IndexOptions, strategy: StrategyName) -> Allocation:
    """Divide what is left once everything that must be there has its place."""
    is_bounded = strategy is not StrategyName.FULL
    floor_share = ASKED_FOR_SHARE if options.strategy in _WITH_INDEX else 0.0
    return Allocation(
        recent=int(tokens * RECENT_SHARE),
        overview_floor=int(tokens * floor_share),
        summaries=int(tokens * options.summary_ratio),
        index=min(tokens, options.max_index_tokens) if is_bounded else tokens,
    )


def by_strength(
    relevant: Sequence[Candidate],
) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """Divide candidates, best first, into those found with confidence and the others."""
    least = relevant[0].score * STRONG_SCORE_SHARE if relevant else 0.0
    strong = tuple(one for one in relevant if one.score >= least)
    return strong, tuple(relevant[len(strong) :])
