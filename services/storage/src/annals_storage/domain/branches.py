"""Branches and their views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

OPEN_SEQ = 2**62
"""Beyond every event: where a part ends that still grows."""
MAX_BRANCHES = 1_000
"""Of one conversation, the trunk included."""


@dataclass(frozen=True, slots=True)
class Part:
    """Events of one branch, those with after_seq < seq <= until_seq."""

    branch: int
    after_seq: int
    until_seq: int

    def holds(self, *, branch: int, seq: int) -> bool:
        """Whether the event at a position is one of them."""
        return self.branch == branch and self.after_seq < seq <= self.until_seq


View = Sequence[Part]
"""What a branch shows: disjoint parts in order of seq, at most one of each branch."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A stored branch; the trunk has the parent 0.

    `event_count`: its own events that are neither deleted nor erased. `last_seq`: of its newest
    own event, 0 when it has none.
    """

    branch: int
    parent_branch: int
    fork_seq: int
    current: bool
    last_seq: int
    event_count: int
    created_at: datetime
    display_name: str = ""


@dataclass(frozen=True, slots=True)
class NewBranch:
    """A branch to open. `event_id` None: nothing is shared; `parent_branch` None: the current
    one.
    """

    conversation_id: UUID
    request_hash: bytes
    event_id: UUID | None = None
    parent_branch: int | None = None
    request_id: UUID | None = None
    display_name: str = ""
    select: bool = False


def shared_parts(parent: View, fork_seq: int) -> list[Part]:
    """Return what a branch that departs behind `fork_seq` shows of its parent's view."""
    return [
        Part(part.branch, part.after_seq, min(part.until_seq, fork_seq))
        for part in parent
        if part.after_seq < fork_seq
    ]


def changed_parts(before: View, after: View) -> list[Part]:
    """Return the events that are in one of two views and not in the other."""
    old = {part.branch: part for part in before}
    new = {part.branch: part for part in after}
    branches = sorted({*old, *new})
    return [part for branch in branches for part in _changed(old.get(branch), new.get(branch))]


def _changed(old: Part | None, new: Part | None) -> Iterator[Part]:
    """Yield where two stretches of one branch differ: at their begin, at their end."""
    if old is None or new is None:
        yield from (part for part in (old, new) if part)
        return
    if new.after_seq >= old.until_seq or old.after_seq >= new.until_seq:
        yield from (old, new)
        return
    for one, other in (
        (old.after_seq, new.after_seq),
        (old.until_seq, new.until_seq),
    ):
        if one != other:
            yield Part(old.branch, min(one, other), max(one, other))
