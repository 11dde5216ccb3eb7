"""Topics: which events belong together, under which id, and what they are called."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_context.domain.topic_clusters import (
    DIRECT_EVENTS,
    NO_TOPIC,
    ClusterParameters,
    Labels,
    Vectors,
    assigned,
    centroids,
    clustered,
    kept_ids,
    most_typical,
)
from annals_context.domain.topic_texts import Said, topic_texts
from annals_context.domain.topic_work import Clustering, FormerTopic, is_whole_due

ROOM = str(UUID(int=7))
USUAL = ClusterParameters()


def around(centres: int, each: int, *, seed: int = 1, noise: float = 0.05) -> Vectors:
    """Vectors of unit length around centres, in turn."""
    random = np.random.default_rng(seed)
    middle = np.eye(32, dtype=np.float32)[np.arange(centres * each) % centres]
    vectors = middle + noise * random.normal(size=middle.shape).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def names(count: int, start: int = 0) -> list[str]:
    return [f"event-{number}" for number in range(start, start + count)]


def of_events(labels: Labels, ids: list[str]) -> list[str]:
    return ["" if number == NO_TOPIC else ids[number] for number in labels.tolist()]


class TestClusters:
    def test_are_of_what_is_alike_and_numbered_as_they_begin(self) -> None:
        labels = clustered(around(3, 5), USUAL)

        assert labels.tolist() == [0, 1, 2] * 5

    def test_leave_out_what_is_like_too_few(self) -> None:
        vectors = np.concatenate([around(1, 5), np.eye(32, dtype=np.float32)[-3:]])

        assert clustered(vectors, USUAL).tolist() == [0] * 5 + [NO_TOPIC] * 3

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_of_too_few_events_are_none(self, count: int) -> None:
        labels = clustered(around(1, 4)[:count], USUAL)

        assert labels.tolist() == [NO_TOPIC] * count

    def test_of_very_many_events_are_the_same_as_of_few(self) -> None:
        vectors = around(6, DIRECT_EVENTS // 6 + 100, noise=0.08)

        labels = clustered(vectors, USUAL)

        assert labels.tolist() == [place % 6 for place in range(len(vectors))]

    def test_take_in_what_is_like_their_members_on_average(self) -> None:
        vectors = around(2, 5)
        means = centroids(vectors, clustered(vectors, USUAL))
        between = (vectors[0] + vectors[1]) / np.linalg.norm(vectors[0] + vectors[1])
        strange = np.eye(32, dtype=np.float32)[-1]
        asked = np.stack([vectors[1], between, strange])

        near, strict = assigned(asked, means, 0.5), assigned(asked, means, 0.9)

        assert near.tolist()[0] == 1
        assert near.tolist()[2] == NO_TOPIC
        assert strict.tolist()[1:] == [NO_TOPIC, NO_TOPIC]

    def test_know_their_most_typical_members(self) -> None:
        vectors = np.eye(32, dtype=np.float32)[[0, 0, 0, 1]]
        mean = vectors.mean(axis=0)

        assert most_typical(vectors, mean, np.array([1, 2, 3]), 2) == [1, 2]


class TestIds:
    def test_are_the_same_when_the_same_is_clustered_again(self) -> None:
        labels, events = clustered(around(4, 6), USUAL), names(24)

        first = kept_ids(labels, [""] * 24, events, ROOM)

        assert kept_ids(labels, [""] * 24, events, ROOM) == first
        assert kept_ids(labels, of_events(labels, first), events, ROOM) == first

    def test_stay_while_a_conversation_grows(self) -> None:
        before, grown = clustered(around(3, 5), USUAL), clustered(around(4, 8), USUAL)
        ids = kept_ids(before, [""] * 15, names(15), ROOM)
        # The same events as far as they go, by their topic.
        former = ["" if place % 4 == 3 or place >= 20 else ids[place % 4] for place in range(32)]

        kept = kept_ids(grown, former, names(32), ROOM)

        assert kept[:3] == ids
        assert kept[3] not in ids

    def test_of_a_topic_that_falls_apart_go_with_the_larger_part(self) -> None:
        labels = np.array([0] * 6 + [1] * 4)

        kept = kept_ids(labels, ["was"] * 10, names(10), ROOM)

        assert kept[0] == "was"
        assert kept[1] != "was"

    def test_of_topics_that_join_are_the_larger_ones(self) -> None:
        labels = np.zeros(10, dtype=np.int64)

        assert kept_ids(labels, ["a"] * 3 + ["b"] * 7, names(10), ROOM) == ["b"]

    def test_are_not_inherited_through_a_few_events(self) -> None:
        labels = np.zeros(10, dtype=np.int64)

        [made] = kept_ids(labels, ["a"] * 2 + [""] * 8, names(10), ROOM)
        [of_few] = kept_ids(np.array([0] * 4 + [NO_TOPIC] * 6), ["a"] * 2 + ["b"] * 2 + ["a"] * 6,
                            names(10), ROOM)  # fmt: skip

        # All of "a" is in it, but nothing else of before.
        assert made == "a"
        assert of_few not in {"a"}

    @given(
        st.lists(st.tuples(st.integers(-1, 4), st.sampled_from(["", "a", "b", "c"])), max_size=40)
    )
    def test_are_of_one_topic_each_whatever_was_before(
        self, members: list[tuple[int, str]]
    ) -> None:
        found = sorted({number for number, _ in members if number >= 0})
        labels = np.array(
            [found.index(number) if number >= 0 else NO_TOPIC for number, _ in members],
            dtype=np.int64,
        )

        kept = kept_ids(labels, [was for _, was in members], names(len(members)), ROOM)

        assert len(kept) == len(set(kept)) == len(found)


class TestTexts:
    def test_name_what_sets_a_topic_apart(self) -> None:
        bread = [
            Said(0, "Anna, the sourdough bread needs the oven for an hour.", "Ben"),
            Said(1, "Yeah, I really love the sourdough bread from that oven, Ben!", "Anna"),
        ]
        ferry = [
            Said(2, "The harbour ferry leaves at noon, Anna, from berth nine.", "Ben"),
            Said(3, "Which ferry? The harbour has two ferries at noon.", "Anna"),
        ]

        of_bread, of_ferry = topic_texts([bread, ferry])

        assert "sourdough" in of_bread.label
        assert "ferry" in of_ferry.label
        assert not {"anna", "ben", "yeah"} & set(f"{of_bread.label} {of_ferry.label}".split())
        assert {place for place, _ in of_bread.summary} <= {0, 1}
        assert of_ferry.samples[0] == (2, ferry[0].text)

    def test_of_nothing_but_function_words_are_still_there(self) -> None:
        [found] = topic_texts([[Said(0, "yes"), Said(1, "and then?")]])

        assert found.label == "untitled"
        assert found.samples == ((0, "yes"), (1, "and then?"))
        assert found.summary == ()

    def test_of_no_words_at_all_are_empty(self) -> None:
        [found] = topic_texts([[]])

        assert (found.summary, found.samples) == ((), ())

    def test_are_cut_to_a_line(self) -> None:
        [found] = topic_texts([[Said(0, "a long\nstory " * 40)]])

        assert len(found.samples[0][1]) <= 120
        assert "\n" not in found.samples[0][1]


class TestWhatIsDue:
    def state(self, events: int, clustered_events: int, *, is_stale: bool = False) -> Clustering:
        topics = (FormerTopic("t", 5, is_stale),)
        return Clustering(
            events, clustered_events, "m", "m", str(USUAL), topics, np.zeros((1, 2), np.float32)
        )

    def test_small_and_grown_conversations_are_clustered_as_a_whole(self) -> None:
        assert is_whole_due(self.state(500, 500), USUAL)
        assert not is_whole_due(self.state(1_100, 1_000), USUAL)
        assert is_whole_due(self.state(1_300, 1_000), USUAL)

    def test_an_agent_may_want_other_topics_than_the_worker_is_set_for(self) -> None:
        wanted = replace(self.state(1_100, 1_000), threshold=0.6).wanted(USUAL)

        assert wanted == ClusterParameters(threshold=0.6, min_events=USUAL.min_events)
        assert is_whole_due(self.state(1_100, 1_000), wanted)

    def test_so_are_those_whose_texts_are_gone_or_that_were_clustered_otherwise(self) -> None:
        assert is_whole_due(self.state(1_100, 1_000, is_stale=True), USUAL)
        assert is_whole_due(self.state(1_100, 1_000), ClusterParameters(threshold=0.6))
