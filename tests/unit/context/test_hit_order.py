"""Which hits come first, how many belong together, and which of them fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.counters import O200K
from tests.unit.context.histories import message, placed
from tests.unit.context.profiles import PROFILE

from annals_common.errors import BudgetTooSmallError
from annals_context.commands.whole_events import fitted
from annals_context.domain.hit_order import LEAST_SHARE, SnippetStrategy, auto_limit, in_order
from annals_context.domain.model import Hit

EVENTS = placed([message(f"word {i}") for i in range(1, 7)])
BEST_IS_OLD = [Hit(EVENTS[0], 1.0), Hit(EVENTS[4], 0.8), Hit(EVENTS[2], 0.6), Hit(EVENTS[5], 0.3)]


def seqs(strategy: SnippetStrategy) -> list[int]:
    return [hit.event.seq for hit in in_order(BEST_IS_OLD, strategy)]


def test_orders_by_score_by_time_and_by_both():
    assert seqs(SnippetStrategy.RELEVANCE) == [1, 5, 3, 6]
    assert seqs(SnippetStrategy.RECENCY) == [5, 3, 1]
    assert seqs(SnippetStrategy.MIXED) == [1, 5, 3, 6]
    newer = [Hit(EVENTS[0], 1.0), Hit(EVENTS[4], 0.9)]
    assert [hit.event.seq for hit in in_order(newer, SnippetStrategy.MIXED)] == [5, 1]


@pytest.mark.parametrize("strategy", SnippetStrategy)
def test_no_hits_have_an_order_too(strategy: SnippetStrategy):
    assert in_order([], strategy) == []


@pytest.mark.parametrize(
    ("scores", "count"),
    [
        ([], 0),
        ([0.0, 0.0], 2),
        ([0.9], 1),
        ([0.9, 0.88, 0.4, 0.39], 2),
        ([0.9, 0.8, 0.72, 0.65, 0.6], 5),
        ([1.0, 0.1, 0.1], 1),
        ([0.9, 0.5, 0.49, 0.1], 1),
    ],
)
def test_the_widest_gap_tells_what_belongs_together(scores: list[float], count: int):
    assert auto_limit(scores) == count


@PROFILE
@given(st.lists(st.floats(0, 1), max_size=30).map(lambda some: sorted(some, reverse=True)))
def test_the_best_always_belongs_and_the_worst_never_alone(scores: list[float]):
    count = auto_limit(scores)

    assert bool(count) is bool(scores)
    assert all(score >= LEAST_SHARE * scores[0] for score in scores[:count])


def test_what_does_not_fit_is_left_out_and_what_follows_is_not():
    long = Hit(placed([message("very long words " * 50)])[0], 0.9)
    short = [Hit(event, 0.5) for event in EVENTS[1:4]]

    found = fitted([long, *short], O200K, max_tokens=7, degraded=("vector_engine",))

    assert [hit for hit, _ in found.hits] == short[:2]
    assert found.omitted == (long, short[2])
    assert found.degraded == ("vector_engine",)
    with pytest.raises(BudgetTooSmallError) as refused:
        fitted([long, *short], O200K, max_tokens=1, degraded=())
    assert refused.value.metadata["minimum_budget_tokens"] == str(O200K.count("word 2"))


def test_a_time_without_a_zone_is_utc():
    naive, aware = (
        datetime(2025, 1, 2, tzinfo=UTC).replace(tzinfo=None),
        datetime(2025, 1, 1, tzinfo=UTC),
    )
    hits = [
        Hit(message("a", seq=1, event_time=aware + timedelta(hours=1)), 1.0),
        Hit(message("b", seq=2, event_time=naive), 1.0),
    ]

    assert [hit.event.seq for hit in in_order(hits, SnippetStrategy.RECENCY)] == [2, 1]
