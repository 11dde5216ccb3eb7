"""The best candidates are ranked once more, and the others stay behind them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from annals_storage.domain.asked_roles import asked_role
from annals_storage.domain.asked_times import Period
from annals_storage.domain.events import Role
from annals_storage.domain.fusion import Ranking
from annals_storage.domain.rescoring import Comparison, compared, head_of, is_named, rescored
from annals_storage.domain.search import Candidate, ScoredChunk, Signal
from annals_storage.domain.search_parameters import DEFAULTS

ROOM = UUID(int=1)


def chunk(seq: int, score: float) -> ScoredChunk:
    return ScoredChunk(UUID(int=seq), event_id(seq), ROOM, seq, 0, score)


def event_id(seq: int) -> UUID:
    return UUID(int=1_000 + seq)


FOUND = {
    Signal.DENSE: [chunk(seq, 1 - seq / 100) for seq in range(10, 60, 10)],
    Signal.BM25: [chunk(seq, 60.0 - seq) for seq in range(10, 60, 10)],
}
"""Five events that lend each other nothing, best first."""


def order(depth: int, similarities: dict[int, float], named: tuple[int, ...] = ()) -> list[int]:
    first = Ranking(FOUND)
    ranking = rescored(
        first,
        head_of(first, FOUND, depth),
        depth,
        Comparison(
            similarities={UUID(int=seq): value for seq, value in similarities.items()},
            speakers=dict.fromkeys(map(event_id, named), 1.0),
        ),
    )
    scores = [event.score for event in ranking.events]
    assert scores == sorted(scores, reverse=True)
    for event in ranking.events:
        parts = ranking.explain(event.event_id)
        assert event.score == pytest.approx(sum(p.weight * p.normalized_score for p in parts))
    return [event.event_id.int - 1_000 for event in ranking.events]


def test_late_interaction_weighs_most() -> None:
    assert order(5, {10: 0.1, 20: 0.2, 30: 0.3, 40: 0.4, 50: 0.9})[0] == 50


def test_the_tail_keeps_its_order_behind_the_head() -> None:
    assert order(2, {10: 0.1, 20: 0.9}) == [20, 10, 30, 40, 50]


def test_what_has_no_similarity_counts_as_before() -> None:
    assert order(5, {20: 0.5, 30: 0.4, 40: 0.3, 50: 0.1})[0] == 10


def test_without_similarities_only_speakers_change_the_order() -> None:
    assert order(5, {}) == [10, 20, 30, 40, 50]
    assert order(5, {}, named=(20,))[0] == 20
    assert DEFAULTS.speaker_bonus < 1
    assert order(5, {}, named=(50,))[0] == 10


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("Caroline", "What did caroline research?"),
        ("Caroline", "What is Caroline's identity?"),
        ("Maria Lopez", "Where does Lopez live?"),
        ("Öz", "was sagte öz?"),
        ("美咲", "美咲さんは何と言いましたか"),
        ("Dr. No", "What does Dr. No want?"),
    ],
)
def test_a_speaker_is_named(name: str, query: str) -> None:
    assert is_named(name, query)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        (None, "What did Caroline research?"),
        ("", "What did Caroline research?"),
        ("Ann", "What about the annals?"),
        ("Melanie", "What did Caroline research?"),
    ],
)
def test_nobody_is_named(name: str | None, query: str) -> None:
    assert not is_named(name, query)


@pytest.mark.parametrize(
    ("query", "role"),
    [
        ("What did the assistant say about taxes?", Role.ASSISTANT),
        ("You mentioned a two-factor method. Which one?", Role.ASSISTANT),
        ("which hotel did you recommend", Role.ASSISTANT),
        ("What did the user ask for?", Role.USER),
        ("Where did I say I was going?", Role.USER),
        ("What did I tell you, and what did you say?", None),
        ("Who is the assistant manager?", None),
        ("What do you think?", None),
        ("Do I have to ask?", None),
    ],
)
def test_a_role_is_asked_for(query: str, role: Role | None) -> None:
    assert asked_role(query) is role


def test_what_an_event_is_compared_by() -> None:
    may = Period(datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC))
    said = Candidate(b"", "Ann", Role.ASSISTANT, 7, datetime(2024, 5, 9, tzinfo=UTC))
    other = said._replace(role=Role.USER, event_time=datetime(2024, 4, 9, tzinfo=UTC))
    pair = [(event_id(1), said), (event_id(2), other)]

    by_role = compared(pair, query="What did the assistant say?", asked=may, similarities={})
    by_name = compared(pair, query="What did Ann say?", asked=None, similarities={})

    assert by_role.speakers == {event_id(1): 1.0}
    assert by_role.times == {event_id(1): 1.0, event_id(2): 0.0}
    assert by_role.tokens == {event_id(1): 7, event_id(2): 7}
    assert by_name.speakers == {event_id(1): 1.0, event_id(2): 1.0}
    assert not by_name.times
