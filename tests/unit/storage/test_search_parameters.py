"""The numbers of the ranking: within their bounds, and each of them in the API."""

from __future__ import annotations

from dataclasses import fields

from annals.storage.v1 import resources_pb2 as res
from annals_storage.domain.search_parameters import (
    BOUNDS,
    DEFAULTS,
    MAX_COMPARED_EVENTS,
    SearchParameters,
    parameters_of,
)


def test_every_parameter_has_bounds_and_stands_in_the_api() -> None:
    names = [field.name for field in fields(SearchParameters)]

    assert list(BOUNDS) == names
    assert [field.name for field in res.SearchParameters.DESCRIPTOR.fields] == names
    assert all(BOUNDS[name].holds(getattr(DEFAULTS, name)) for name in names)


def test_no_more_events_are_compared_than_can_be_read_cheaply() -> None:
    assert [DEFAULTS.depth(limit) for limit in (1, 100, 250, 1_000)] == [
        100,
        100,
        250,
        MAX_COMPARED_EVENTS,
    ]


def test_no_more_candidates_are_asked_for_than_the_bound() -> None:
    assert [DEFAULTS.candidates(limit) for limit in (1, 100, 1_000)] == [200, 400, 2_000]


def test_what_a_version_does_not_take_is_the_default() -> None:
    own = {"time_bonus": 0.1, "neighbor_distance": 2.0, "speaker_bonus": None, "dense_weight": 9}

    parameters, names = parameters_of({**own, "of_tomorrow": 1})

    assert names == {"time_bonus", "neighbor_distance"}
    assert parameters.neighbor_shares == (0.3, 0.21)
    assert parameters.speaker_bonus == DEFAULTS.speaker_bonus
    assert parameters.dense_weight == DEFAULTS.dense_weight
