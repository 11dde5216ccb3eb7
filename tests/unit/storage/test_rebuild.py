"""What `annals-storage rebuild` says where it cannot begin."""

from __future__ import annotations

import pytest

from annals_storage.app_rebuild import what_is_there
from annals_storage.domain.generations import EmbeddingModel, GenerationState, MirrorGeneration

MODEL = EmbeddingModel("a model", None, 8)


@pytest.mark.parametrize(
    ("states", "hint"),
    [
        (("serving", "building"), "wait, or run `rebuild --cancel`"),
        (("retired", "serving"), "try again in a minute"),
        (("serving", "removing"), "try again in a minute"),
        (("serving",), "another one was begun just now"),
    ],
)
def test_giving_up_is_offered_only_where_something_is_being_built(
    states: tuple[str, ...], hint: str
) -> None:
    rows = [
        MirrorGeneration(number, GenerationState(state), MODEL, 1, None, 0, "")
        for number, state in enumerate(states, 1)
    ]

    said = what_is_there(rows)

    assert hint in said
    assert ("--cancel" in said) is ("building" in states)
    assert f"generation 1 is {states[0]}" in said
