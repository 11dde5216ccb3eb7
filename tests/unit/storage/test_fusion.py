"""How the signals' scores become one ranking."""

from __future__ import annotations

from uuid import UUID

import pytest

from annals_storage.domain.fusion import Bonus, Neighbors, Ranking
from annals_storage.domain.search import ScoredChunk, Signal
from annals_storage.domain.search_parameters import DEFAULTS

ROOM, OTHER_ROOM = UUID(int=1), UUID(int=2)


def chunk(seq: int, score: float, *, index: int = 0, room: UUID = ROOM) -> ScoredChunk:
    event_id = UUID(int=(room.int << 64) | seq)
    return ScoredChunk(UUID(int=seq * 1000 + index), event_id, room, seq, index, score)


def seqs(ranking: Ranking) -> list[int]:
    return [event.event_id.int & 0xFFFF for event in ranking.events]


def test_nothing_found_is_an_empty_ranking() -> None:
    assert Ranking({Signal.DENSE: [], Signal.BM25: []}).events == []


def test_dense_alone_keeps_its_cosines() -> None:
    ranking = Ranking({Signal.DENSE: [chunk(1, 0.2), chunk(2, 0.8)]})

    assert [(event.score) for event in ranking.events] == [0.8, 0.2]


def test_an_event_counts_with_its_best_chunk() -> None:
    ranking = Ranking({Signal.BM25: [chunk(1, 2.0, index=0), chunk(1, 4.0, index=3)]})

    assert [(event.chunk_index, event.score) for event in ranking.events] == [(3, 1.0)]


def test_both_signals_beat_one() -> None:
    dense = [chunk(1, 0.9), chunk(20, 0.9), chunk(40, 0.1)]
    words = [chunk(20, 5.0), chunk(60, 5.0)]

    assert seqs(Ranking({Signal.DENSE: dense, Signal.BM25: words}))[0] == 20


def test_neighbours_lend_a_part_of_their_score() -> None:
    found = {Signal.DENSE: [chunk(10, 0.2)], Signal.BM25: [chunk(11, 9.0), chunk(50, 1.0)]}
    ranking = Ranking(found)

    [*_, lent] = ranking.explain(chunk(10, 0).event_id)

    assert lent.signal == "neighbors"
    assert lent.raw_score == pytest.approx(DEFAULTS.neighbor_share * DEFAULTS.first_bm25_weight)


def test_neighbours_of_another_conversation_lend_nothing() -> None:
    found = {
        Signal.DENSE: [chunk(10, 0.2)],
        Signal.BM25: [chunk(11, 9.0, room=OTHER_ROOM)],
    }

    [*_, lent] = Ranking(found).explain(chunk(10, 0).event_id)

    assert lent.raw_score == 0


@pytest.mark.parametrize(("tokens", "part"), [(79, 1), (80, 1), (160, 0.5), (800, 0.1)])
def test_long_events_gain_less_of_their_neighbours(tokens: int, part: float) -> None:
    found = {Signal.DENSE: [chunk(10, 0.2)], Signal.BM25: [chunk(11, 9.0), chunk(50, 1.0)]}
    event_id = chunk(10, 0).event_id
    lengths = Neighbors((0.3,), full_tokens=80, tokens={event_id: tokens})

    [*_, lent] = Ranking(found, neighbors=lengths).explain(event_id)

    assert lent.raw_score == pytest.approx(part * 0.3 * DEFAULTS.first_bm25_weight)


def test_without_shares_or_bound_nothing_depends_on_neighbours_or_length() -> None:
    found = {Signal.DENSE: [chunk(10, 0.2)], Signal.BM25: [chunk(11, 9.0)]}
    event_id = chunk(10, 0).event_id

    alone = Ranking(found, neighbors=Neighbors(())).explain(event_id)
    [*_, lent] = Ranking(found, neighbors=Neighbors((0.3,), 0, {event_id: 9_999})).explain(event_id)

    assert [part.signal for part in alone] == ["dense"]
    assert lent.raw_score == pytest.approx(0.3 * DEFAULTS.first_bm25_weight)


def test_every_bonus_is_a_part_of_its_own() -> None:
    found = {Signal.DENSE: [chunk(10, 0.9), chunk(20, 0.8), chunk(30, 0.1)]}
    near, far = chunk(20, 0).event_id, chunk(30, 0).event_id
    bonuses = [Bonus("speaker", 0.3, {near: 1.0}), Bonus("time", 0.4, {near: 0.5, far: 0.0})]
    ranking = Ranking(
        {**found, Signal.BM25: []}, bonuses=[*bonuses, Bonus("none", 0.0, {near: 1.0})]
    )

    gained = {part.signal: part for part in ranking.explain(near) if part.rank == 0}

    assert set(gained) == {"neighbors", "speaker", "time"}
    assert gained["time"].normalized_score == 0.5
    assert gained["time"].weight / gained["speaker"].weight == pytest.approx(0.4 / 0.3)
    assert "time" not in {part.signal for part in ranking.explain(far)}


def test_components_add_up_and_no_score_exceeds_one() -> None:
    found = {
        Signal.DENSE: [chunk(seq, 1 - seq / 10) for seq in range(1, 9)],
        Signal.BM25: [chunk(seq, 9.0) for seq in range(2, 7)],
    }
    ranking = Ranking(found)

    for event in ranking.events:
        parts = ranking.explain(event.event_id)
        assert event.score == pytest.approx(sum(p.weight * p.normalized_score for p in parts))
        assert 0 <= event.score <= 1
        assert all(0 <= p.normalized_score <= 1 for p in parts)
