"""What a reader asked to see more or less of, and what came of it.

Pins are levels by seq, in the order they were asked for: FULL for what was expanded, STUB for
what was collapsed. The latest come first for their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from annals_context.domain.model import ContextItem, DetailLevel


@dataclass(frozen=True, slots=True)
class Pin:
    """What was asked last of events that are shown together; a later pin has a higher `rank`."""

    level: DetailLevel
    rank: int


@dataclass(frozen=True, slots=True)
class DetailChange:
    """How much of an item was there and is there; None: nothing."""

    handle: str
    before: DetailLevel | None
    after: DetailLevel | None


def with_level(
    pins: Mapping[int, DetailLevel], seqs: Iterable[int], level: DetailLevel
) -> dict[int, DetailLevel]:
    """Return pins with these events at a level, as the latest ones."""
    latest = dict.fromkeys(seqs, level)
    return {**{seq: known for seq, known in pins.items() if seq not in latest}, **latest}


def pin_of(pins: Mapping[int, DetailLevel], seqs: Iterable[int]) -> Pin | None:
    """Return the latest pin of some events; None when none of them is pinned."""
    if not pins:
        return None
    own = frozenset(seqs)
    ranked = [Pin(level, rank) for rank, (seq, level) in enumerate(pins.items()) if seq in own]
    return ranked[-1] if ranked else None


def kept_pins(
    pins: Mapping[int, DetailLevel], items: Iterable[ContextItem]
) -> dict[int, DetailLevel]:
    """Return pins without the expanded events that a context does not show in full."""
    full = {item.seq for item in items if item.detail is DetailLevel.FULL}
    return {
        seq: level for seq, level in pins.items() if level is not DetailLevel.FULL or seq in full
    }


def shown_levels(items: Iterable[ContextItem]) -> dict[str, DetailLevel]:
    """Return how much is shown of each item that has a handle, in their order."""
    return {item.handle: item.detail for item in items if item.handle}


def changes_between(
    before: Mapping[str, DetailLevel], after: Mapping[str, DetailLevel]
) -> tuple[DetailChange, ...]:
    """Return what differs: what is there in its order, then what is gone."""
    names = (*after, *(handle for handle in before if handle not in after))
    found = (DetailChange(name, before.get(name), after.get(name)) for name in names)
    return tuple(change for change in found if change.before is not change.after)
