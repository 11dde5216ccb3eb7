"""Reads what is kept of a conversation, and has the missing made within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from annals_common.errors import AnnalsError, DeadlineExceededError
from annals_context.commands.summarising import SOURCE_CHANGED, SummariseConversation
from annals_context.domain.events import Event
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import AgeingCurve, Block, block_of, cover
from annals_context.domain.summarising.covering import fetch
from annals_context.domain.summarising.kept import KeptSummary, TimeRange
from annals_context.ports import Caller
from annals_context.summary_ports import SummaryArchive

MAX_COVER = 32
MAX_BLOCKS_AROUND = 16
MAX_BLOCKS_ON_DEMAND = 32
"""Of events: 2,048 of them are read and summarised while somebody waits."""
MAX_PERIOD_EVENTS = 4_096
TIME_SHARE = 0.5
"""Of the time left, how much making summaries may take: the answer needs the rest."""
INCOMPLETE = "summaries_incomplete"
TIME_RANGE_CUT = "time_range_cut"


@dataclass(frozen=True, slots=True)
class Reading:
    """Summaries, oldest first, and why they may cover less than asked for."""

    kept: list[KeptSummary]
    degraded: tuple[str, ...]


class ReadSummaries:
    """What is kept of a branch, brought up to date as far as time allows."""

    def __init__(
        self, archive: SummaryArchive, summarise: SummariseConversation, curve: AgeingCurve
    ) -> None:
        self._archive, self._summarise, self._curve = archive, summarise, curve

    async def cover(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        level: SummaryLevel,
        around: Sequence[int],
    ) -> Reading:
        """Return summaries of one level that cover the current branch, older parts merged, and of
        the blocks around some events, the first ones named, summaries of their own.

        Raises what storage raises.
        """

        def wanted(head_seq: int) -> list[Block]:
            whole = [block for block, _ in cover(head_seq, self._curve, limit=MAX_COVER)]
            near = dict.fromkeys(block_of(seq, head_seq) for seq in around if seq <= head_seq)
            return sorted({*whole, *islice(near, MAX_BLOCKS_AROUND)})

        return await self.blocks(caller, conversation_id, branch=0, level=level, wanted=wanted)

    async def blocks(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        level: SummaryLevel,
        wanted: Callable[[int], Sequence[Block]],
    ) -> Reading:
        """Return the summaries of the blocks that are wanted of a branch with such a head."""
        source = await self._archive.source(caller, conversation_id, branch=branch, blocks=())
        made, degraded = await self._made(caller, conversation_id, source.branch)

        async def read(block: Block, of_level: SummaryLevel) -> list[KeptSummary]:
            kept = await self._archive.list_kept(
                caller,
                conversation_id,
                branch=source.branch,
                within=block,
                height=block.height,
                level=of_level,
            )
            return [*(own for own in made if _is_of(own, block, of_level)), *kept]

        blocks = wanted(source.head_seq)
        return Reading(await fetch([(block, level) for block in blocks], read), degraded)

    async def _made(
        self, caller: Caller, conversation_id: str, branch: int
    ) -> tuple[list[KeptSummary], tuple[str, ...]]:
        """Make the newest of what is missing, as far as time allows."""
        within = caller
        if caller.timeout_s is not None:
            within = replace(caller, timeout_s=caller.timeout_s * TIME_SHARE)
        try:
            progress = await self._summarise.bring_up(
                within, conversation_id, branch=branch, max_blocks=MAX_BLOCKS_ON_DEMAND
            )
        except DeadlineExceededError:
            return [], (INCOMPLETE,)
        except AnnalsError as error:
            if error.reason != SOURCE_CHANGED:
                raise
            return [], (INCOMPLETE,)
        return progress.made, (INCOMPLETE,) if progress.left else ()


async def events_of_period(
    archive: SummaryArchive,
    caller: Caller,
    conversation_id: str,
    *,
    branch: int,
    when: TimeRange,
) -> tuple[list[Event], tuple[str, ...]]:
    """Return the newest events of a period, oldest first, and why they may not be all."""
    # One more than is summarised tells whether there are more.
    events = await archive.newest_events(
        caller, conversation_id, branch=branch, when=when, limit=MAX_PERIOD_EVENTS + 1
    )
    is_cut = len(events) > MAX_PERIOD_EVENTS
    return events[-MAX_PERIOD_EVENTS:], (TIME_RANGE_CUT,) if is_cut else ()


def _is_of(summary: KeptSummary, block: Block, level: SummaryLevel) -> bool:
    own = summary.block
    is_within = block.first_seq <= own.first_seq and own.last_seq <= block.last_seq
    return is_within and summary.level is level and own.height == block.height
