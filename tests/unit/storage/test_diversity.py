"""Maximal marginal relevance, and the groups hits stand for."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annals_storage.domain.diversity import Choice, diversified
from annals_storage.domain.fusion import Ranking
from annals_storage.domain.hit_groups import Grouping, Ranked, has_groups, to_rank
from annals_storage.domain.search import ScoredChunk, Signal

NORTH, NORTH_BY_EAST, EAST = [1.0, 0.0], [0.96, 0.28], [0.0, 1.0]


def unit(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def order(choices: list[Choice]) -> list[int]:
    return [choice.place for choice in choices]


def test_what_was_said_already_comes_after_what_is_new() -> None:
    scores, vectors = [1.0, 0.95, 0.6], unit(NORTH, NORTH_BY_EAST, EAST)

    choices = diversified(scores, vectors, 0.5)

    assert order(choices) == [0, 2, 1]
    assert [choice.similarity for choice in choices] == pytest.approx([0.0, 0.0, 0.96])


def test_a_little_diversity_does_not_move_what_is_far_worse() -> None:
    assert order(diversified([1.0, 0.95, 0.2], unit(NORTH, NORTH_BY_EAST, EAST), 0.1)) == [0, 1, 2]


def test_without_vectors_the_order_stays() -> None:
    assert order(diversified([0.9, 0.5, 0.4], np.zeros((3, 2), np.float32), 0.7)) == [0, 1, 2]
    assert diversified([], np.zeros((0, 2), np.float32), 0.7) == []


@example([2.2250738585e-313, -1.0], 0.0, 0)
@given(
    st.lists(st.floats(-1, 1), max_size=20).map(lambda scores: sorted(scores, reverse=True)),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_everything_is_chosen_once_and_always_alike(
    scores: list[float], diversity: float, seed: int
) -> None:
    vectors = np.random.default_rng(seed).normal(size=(len(scores), 4)).astype(np.float32)

    chosen = order(diversified(scores, vectors, diversity))

    assert sorted(chosen) == list(range(len(scores)))
    assert chosen == order(diversified(scores, vectors, diversity))
    if scores and scores[0] > 0 and diversity == 0:
        assert chosen == list(range(len(scores)))


def chunk(event: int, index: int, score: float, conversation: int = 1) -> ScoredChunk:
    return ScoredChunk(
        UUID(int=100 * event + index), UUID(int=event), UUID(int=conversation), event, index, score
    )


LONG_AND_SHORT = {
    Signal.DENSE: [chunk(1, 0, 0.9), chunk(1, 2, 0.8), chunk(2, 0, 0.7), chunk(3, 0, 0.6, 2)]
}


def ranked(group_by: Grouping) -> Ranked:
    return Ranked(Ranking(to_rank(LONG_AND_SHORT, group_by)), LONG_AND_SHORT, group_by)


@pytest.mark.parametrize(
    ("group_by", "hits"),
    [
        (Grouping.EVENT, [(1, 0, 2), (2, 0, 1), (3, 0, 1)]),
        (Grouping.CHUNK, [(1, 0, 1), (1, 2, 1), (2, 0, 1), (3, 0, 1)]),
        (Grouping.CONVERSATION, [(1, 0, 2), (3, 0, 1)]),
    ],
)
def test_a_hit_is_the_best_of_its_group(
    group_by: Grouping, hits: list[tuple[int, int, int]]
) -> None:
    found = ranked(group_by)
    batch, left = found.next_batch(found.events, frozenset(), 10)

    assert [
        (found.chunk(e).event_id.int, e.chunk_index, found.group_size(e)) for e in batch
    ] == hits
    assert len(left) == (1 if group_by is Grouping.CONVERSATION else 0)
    assert has_groups(LONG_AND_SHORT, group_by, len(hits))
    assert not has_groups(LONG_AND_SHORT, group_by, len(hits) + 1)


def test_the_next_of_a_conversation_follows_where_its_best_is_gone() -> None:
    found = ranked(Grouping.CONVERSATION)
    [best], left = found.next_batch(found.events, frozenset(), 1)
    again, nothing = found.next_batch(left, frozenset(), 10)

    assert found.chunk(best).event_id.int == 1
    assert [found.chunk(event).event_id.int for event in again] == [2, 3]
    assert nothing == []
    after_it, _ = found.next_batch(left, {UUID(int=1)}, 10)
    assert [found.chunk(event).event_id.int for event in after_it] == [3]
