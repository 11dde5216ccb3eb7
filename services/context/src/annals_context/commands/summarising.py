"""Brings the summaries of a conversation up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from annals_common.errors import AnnalsError
from annals_context.domain.events import Event
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import Block, all_blocks
from annals_context.domain.summarising.kept import KeptSummary, MadeSummary, SummaryRun
from annals_context.domain.summarising.summarise import summary_of_events, summary_of_summaries
from annals_context.domain.summarising.writing import LIMITS, Digest
from annals_context.ports import Caller
from annals_context.summary_ports import SummaryArchive

BATCH_BLOCKS = 15
"""Read at once: their events fill a page."""
ATTEMPTS = 3
"""How often a batch is made anew because its events changed meanwhile."""
SOURCE_CHANGED = "SUMMARY_SOURCE_CHANGED"
_ByLevel = list[dict[SummaryLevel, Digest]]


@dataclass(slots=True)
class Progress:
    """What was made so far. `left`: blocks of events that are still without a summary."""

    made: list[KeptSummary] = field(default_factory=list)
    left: list[Block] = field(default_factory=list)
    input_tokens: int = 0

    def run(self, started_at: datetime, error: str = "") -> SummaryRun:
        """Return the record of it."""
        written = sum(summary.digest.tokens for summary in self.made)
        return SummaryRun(started_at, len(self.made), self.input_tokens, written, error)


class SummariseConversation:
    """Makes what is missing: blocks of events first, then block by block what is above them.

    Whatever was made is kept at once, so that a run that is cut off is not in vain. Calls made
    for end users keep nothing.
    """

    def __init__(self, archive: SummaryArchive, count: Callable[[str], int]) -> None:
        """`count`: tokens of a text by the encoding summaries are limited in."""
        self._archive, self._count = archive, count

    async def __call__(self, caller: Caller, conversation_id: str) -> None:
        """Bring the current branch up to date. Raises what storage raises."""
        await self.bring_up(caller, conversation_id, branch=0)

    async def bring_up(
        self, caller: Caller, conversation_id: str, *, branch: int, max_blocks: int | None = None
    ) -> Progress:
        """Make what is missing on a branch, of the newest blocks of events `max_blocks` at most."""
        source = await self._archive.source(caller, conversation_id, branch=branch, blocks=())
        room = _Room(self._archive, caller, conversation_id, source.branch)
        work = _Work.of(await room.missing(source.head_seq), max_blocks)
        progress = Progress(left=work.left)
        started_at = datetime.now(UTC)
        try:
            for blocks in work.batches():
                await self._settled(room, blocks, progress)
        except AnnalsError as error:
            with suppress(AnnalsError):
                await room.keep([], progress.run(started_at, error.reason))
            raise
        if progress.made:
            await room.keep([], progress.run(started_at))
        return progress

    async def _settled(self, room: _Room, blocks: Sequence[Block], progress: Progress) -> None:
        """Make the summaries of neighbouring blocks and keep them."""
        for attempt in range(ATTEMPTS):
            try:
                progress.made += await self._made(room, blocks, progress)
            except AnnalsError as error:
                if error.reason != SOURCE_CHANGED or attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    async def _made(
        self, room: _Room, blocks: Sequence[Block], progress: Progress
    ) -> list[KeptSummary]:
        # The versions first: what changes while it is read is refused afterwards.
        versions = await room.versions(blocks)
        if blocks[0].height:
            parts = [part.digest for part in await room.parts(blocks[0], progress.made)]
            digests, tokens = await asyncio.to_thread(self._merged, parts)
        else:
            events = await room.events(blocks[0].first_seq, blocks[-1].last_seq)
            digests, tokens = await asyncio.to_thread(self._told, blocks, events)
        made = [
            MadeSummary(block, level, digest, version)
            for block, version, by_level in zip(blocks, versions, digests, strict=True)
            for level, digest in by_level.items()
            if digest.text
        ]
        await room.keep(made)
        progress.input_tokens += tokens
        return [KeptSummary(item.block, item.level, item.digest) for item in made]

    def _told(self, blocks: Sequence[Block], events: Sequence[Event]) -> tuple[_ByLevel, int]:
        """Return the summaries of each block of events, and the tokens of those."""
        digests = [
            {
                level: summary_of_events(_within(block, events), limits, self._count)
                for level, limits in LIMITS.items()
            }
            for block in blocks
        ]
        return digests, sum(self._count(event.body) for event in events)

    def _merged(self, parts: Sequence[Digest]) -> tuple[_ByLevel, int]:
        """Return the summaries of what was said of the parts of one block, and its tokens."""
        digests = {
            level: summary_of_summaries(parts, limits, self._count)
            for level, limits in LIMITS.items()
        }
        return [digests], sum(part.tokens for part in parts)


@dataclass(frozen=True, slots=True)
class _Room:
    """One branch of one conversation, on behalf of a caller."""

    archive: SummaryArchive
    caller: Caller
    conversation_id: str
    branch: int

    async def missing(self, head_seq: int) -> list[Block]:
        """Return the blocks that lack a summary of any level, bottom up, oldest first."""
        kept = await self.archive.list_kept(self.caller, self.conversation_id, branch=self.branch)
        levels: dict[Block, set[SummaryLevel]] = {}
        for summary in kept:
            levels.setdefault(summary.block, set()).add(summary.level)
        return [block for block in all_blocks(head_seq) if len(levels.get(block, ())) < len(LIMITS)]

    async def versions(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        """Return what each is made of now."""
        source = await self.archive.source(
            self.caller, self.conversation_id, branch=self.branch, blocks=blocks
        )
        return source.versions

    async def events(self, first_seq: int, last_seq: int) -> list[Event]:
        """Return the events of a range."""
        return await self.archive.events(
            self.caller,
            self.conversation_id,
            branch=self.branch,
            first_seq=first_seq,
            last_seq=last_seq,
        )

    async def parts(self, block: Block, made: Sequence[KeptSummary]) -> list[KeptSummary]:
        """Return what a block is merged of: what is kept, else what was made just now."""
        kept = await self.archive.list_kept(
            self.caller,
            self.conversation_id,
            branch=self.branch,
            within=block,
            height=block.height - 1,
            level=SummaryLevel.DETAILED,
        )
        children = set(block.children())
        found = {
            summary.block: summary
            for summary in (*made, *kept)
            if summary.block in children and summary.level is SummaryLevel.DETAILED
        }
        return [found[child] for child in sorted(found)]

    async def keep(self, made: Sequence[MadeSummary], run: SummaryRun | None = None) -> None:
        """Store what was made, unless the call is made for an end user."""
        if self.caller.end_user or not (made or run):
            return
        failed = replace(run, summary_count=0) if run and run.error else run
        await self.archive.put(
            self.caller, self.conversation_id, branch=self.branch, summaries=made, run=failed
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be made, bottom up, and the blocks of events that are left for another time."""

    blocks: list[Block]
    left: list[Block]

    @classmethod
    def of(cls, missing: Sequence[Block], max_blocks: int | None) -> _Work:
        """Take the newest blocks of events and what is above them."""
        bottom = [block for block in missing if not block.height]
        cut = 0 if max_blocks is None else max(0, len(bottom) - max_blocks)
        above = [b for b in missing if b.height and not _holds_any(b, bottom[:cut])]
        return cls([*bottom[cut:], *above], bottom[:cut])

    def batches(self) -> Iterator[list[Block]]:
        """Yield what is made at once, in an order in which parts come before the whole."""
        yield from _batches([block for block in self.blocks if not block.height])
        yield from ([block] for block in self.blocks if block.height)


def _batches(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield neighbouring blocks together, as many as fill a page."""
    batch: list[Block] = []
    for block in blocks:
        if batch and (batch[-1].last_seq + 1 != block.first_seq or len(batch) == BATCH_BLOCKS):
            yield batch
            batch = []
        batch.append(block)
    if batch:
        yield batch


def _within(block: Block, events: Sequence[Event]) -> list[Event]:
    return [event for event in events if block.first_seq <= event.seq <= block.last_seq]


def _holds_any(block: Block, others: Sequence[Block]) -> bool:
    return any(block.first_seq <= other.first_seq <= block.last_seq for other in others)
