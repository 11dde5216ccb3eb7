"""Which parts of a conversation have summaries of their own, and which of them to show.

Events are taken in blocks by their seq, whatever is in view of a block, and as many blocks at a
time make the next height. So boundaries never move: what comes changes the newest block alone,
what is edited the block it is in and those above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from annals_context.domain.material import SummaryLevel

BLOCK_EVENTS = 64
BLOCKS_PER_MERGE = 8
MAX_HEIGHT = 3
"""A block of this height spans 32,768 events."""
HALVINGS = 8
"""After so many the curve leaves next to nothing in detail."""


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """A part of a conversation. `last_seq` is before the boundary in the newest block alone."""

    height: int
    first_seq: int
    last_seq: int

    @property
    def is_whole(self) -> bool:
        """Whether it reaches its boundary."""
        return self.last_seq - self.first_seq + 1 == span(self.height)

    def children(self) -> Iterator[Block]:
        """Yield the blocks that it is made of; none at the bottom."""
        step = span(self.height - 1)
        if self.height:
            for first in range(self.first_seq, self.last_seq + 1, step):
                yield Block(self.height - 1, first, first + step - 1)


@dataclass(frozen=True, slots=True)
class AgeingCurve:
    """How much is kept of what is how old, in events before the newest one.

    Up to `detailed_events` come detailed, up to `standard_events` at the standard level, the rest
    brief. From `merged_events` on blocks are merged, from eight times as many on once more.
    """

    detailed_events: int = 128
    standard_events: int = 1_024
    merged_events: int = 512

    def level(self, age_events: int) -> SummaryLevel:
        """Return the level of what is so old."""
        if age_events < self.detailed_events:
            return SummaryLevel.DETAILED
        return SummaryLevel.STANDARD if age_events < self.standard_events else SummaryLevel.BRIEF

    def height(self, age_events: int) -> int:
        """Return how far blocks of this age are merged."""
        height, bound = 0, self.merged_events
        while height < MAX_HEIGHT and age_events >= bound:
            height, bound = height + 1, bound * BLOCKS_PER_MERGE
        return height

    def halved(self) -> AgeingCurve:
        """Return the curve under which everything ages twice as fast."""
        return AgeingCurve(
            self.detailed_events // 2, self.standard_events // 2, max(1, self.merged_events // 2)
        )


def decompose(first_seq: int, last_seq: int) -> Iterator[Block]:
    """Yield the whole blocks of a range, as high as they go, and what is left at its ends: of
    height 0 and not whole.
    """
    while first_seq <= last_seq:
        block = next(
            (whole for whole in _aligned(first_seq) if whole.last_seq <= last_seq),
            block_of(first_seq, last_seq),
        )
        yield Block(block.height, first_seq, block.last_seq)
        first_seq = block.last_seq + 1


def _aligned(first_seq: int) -> Iterator[Block]:
    """Yield the blocks that begin at a seq, the highest first."""
    for height in range(MAX_HEIGHT, -1, -1):
        if (first_seq - 1) % span(height) == 0:
            yield Block(height, first_seq, first_seq + span(height) - 1)


def block_of(seq: int, head_seq: int) -> Block:
    """Return the block of events that holds a seq."""
    first = seq - (seq - 1) % BLOCK_EVENTS
    return Block(0, first, min(first + BLOCK_EVENTS - 1, head_seq))


def span(height: int) -> int:
    """Return how many seqs a whole block of this height spans."""
    return BLOCK_EVENTS * int(BLOCKS_PER_MERGE**height)


def all_blocks(head_seq: int) -> Iterator[Block]:
    """Yield every block of a conversation whose newest event is `head_seq`, bottom up: the newest
    one, begun, and above it whole ones alone.
    """
    for height in range(MAX_HEIGHT + 1):
        step = span(height)
        for first in range(1, head_seq + 1, step):
            last = first + step - 1
            if last <= head_seq or not height:
                yield Block(height, first, min(last, head_seq))


def cover(head_seq: int, curve: AgeingCurve, *, limit: int) -> list[tuple[Block, SummaryLevel]]:
    """Return blocks that cover everything once, oldest first, with their levels.

    At most `limit`: where the curve asks for more, everything ages faster; if that is of no more
    help, the oldest are left out.
    """
    found = list(_cover(head_seq, curve))
    for _ in range(HALVINGS):
        if len(found) <= limit:
            break
        curve = curve.halved()
        found = list(_cover(head_seq, curve))
    return found[max(0, len(found) - limit) :]


def _cover(head_seq: int, curve: AgeingCurve) -> Iterator[tuple[Block, SummaryLevel]]:
    first = 1
    while first <= head_seq:
        block = _highest(first, head_seq, curve)
        yield block, curve.level(head_seq - block.last_seq)
        first = block.last_seq + 1


def _highest(first_seq: int, head_seq: int, curve: AgeingCurve) -> Block:
    for block in _aligned(first_seq):
        age = head_seq - block.last_seq
        if age >= 0 and curve.height(age) >= block.height:
            return block
    return block_of(first_seq, head_seq)
