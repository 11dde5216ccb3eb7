"""Views as parts, against views as lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain.branches import OPEN_SEQ, Part, changed_parts, shared_parts

STEPS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=25
)
"""Each opens a branch: off which one, behind which of its events, and how many it gets."""


class Model:
    """Branches both ways: as parts, and as the lists of (seq, branch) that they show."""

    def __init__(self) -> None:
        self.parts: dict[int, list[Part]] = {1: [Part(1, 0, OPEN_SEQ)]}
        self.lists: dict[int, list[tuple[int, int]]] = {1: []}
        self.last_seq = 0

    def append(self, branch: int, count: int) -> None:
        for _ in range(count):
            self.last_seq += 1
            self.lists[branch].append((self.last_seq, branch))

    def open(self, parent: int, place: int) -> int:
        branch = len(self.parts) + 1
        shown = self.lists[parent]
        shared = shown[: place % (len(shown) + 1)]
        fork_seq = shared[-1][0] if shared else 0
        own = Part(branch, fork_seq, OPEN_SEQ)
        self.parts[branch] = [*shared_parts(self.parts[parent], fork_seq), own]
        self.lists[branch] = list(shared)
        return branch

    def shown(self, parts: list[Part]) -> list[tuple[int, int]]:
        everything = sorted({place for line in self.lists.values() for place in line})
        return [
            (seq, branch)
            for part in parts
            for seq, branch in everything
            if part.holds(branch=branch, seq=seq)
        ]


def grown(steps: list[tuple[int, int, int]]) -> Model:
    model = Model()
    model.append(1, 5)
    for parent, place, count in steps:
        chosen = parent % len(model.parts) + 1
        model.append(model.open(chosen, place), count)
        model.append(chosen, count // 2)
    return model


@given(STEPS)
def test_parts_show_what_copied_lists_show(steps: list[tuple[int, int, int]]) -> None:
    model = grown(steps)

    for branch, parts in model.parts.items():
        assert model.shown(parts) == model.lists[branch]
        assert all(part.after_seq < part.until_seq for part in parts)
        assert len({part.branch for part in parts}) == len(parts)


@given(STEPS, st.integers(0, 99), st.integers(0, 99))
def test_what_changes_is_the_symmetric_difference(
    steps: list[tuple[int, int, int]], one: int, other: int
) -> None:
    model = grown(steps)
    before, after = (number % len(model.parts) + 1 for number in (one, other))

    changed = changed_parts(model.parts[before], model.parts[after])

    expected = set(model.lists[before]) ^ set(model.lists[after])
    found = model.shown(changed)
    assert set(found) == expected
    assert len(found) == len(expected)


def test_stretches_of_one_branch_that_do_not_meet_both_change() -> None:
    assert changed_parts([Part(1, 0, 3)], [Part(1, 5, 9)]) == [Part(1, 0, 3), Part(1, 5, 9)]
