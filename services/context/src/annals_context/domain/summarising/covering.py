"""Finds the summaries of a cover, and lower ones where one is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import Block
from annals_context.domain.summarising.kept import KeptSummary

Wanted = tuple[Block, SummaryLevel]
Read = Callable[[Block, SummaryLevel], Awaitable[list[KeptSummary]]]
"""Returns the summaries of a height and level that lie within a block's range."""


async def fetch(wanted: Sequence[Wanted], read: Read) -> list[KeptSummary]:
    """Return what there is of a cover, oldest first; neighbours alike are read at once.

    In place of a missing one come those it would be made of. The newest block may be one of
    fewer events: what came since is in none.
    """
    runs = list(_runs(wanted))
    found = await asyncio.gather(*(read(block, level) for block, level, _ in runs))
    kept: dict[tuple[int, int], KeptSummary] = {}
    lower: list[Wanted] = []
    for (_, level, blocks), summaries in zip(runs, found, strict=True):
        by_first = {summary.block.first_seq: summary for summary in summaries}
        for block in blocks:
            if block.first_seq in by_first:
                kept[block.height, block.first_seq] = by_first[block.first_seq]
            else:
                lower += [(child, level) for child in block.children()]
    below = await fetch(lower, read) if lower else []
    return sorted((*kept.values(), *below), key=lambda summary: summary.block.first_seq)


def _runs(wanted: Sequence[Wanted]) -> Iterator[tuple[Block, SummaryLevel, list[Block]]]:
    """Yield neighbours of one height and level together."""
    blocks: list[Block] = []
    for index, (block, level) in enumerate(wanted):
        blocks.append(block)
        behind = wanted[index + 1 : index + 2]
        if not any(_continues(block, level, other) for other in behind):
            yield Block(block.height, blocks[0].first_seq, block.last_seq), level, blocks
            blocks = []


def _continues(block: Block, level: SummaryLevel, other: Wanted) -> bool:
    is_next = other[0].first_seq == block.last_seq + 1
    return is_next and (other[0].height, other[1]) == (block.height, level)
