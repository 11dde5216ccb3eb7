"""Summarises a part of a conversation: a range, a topic, a period, or the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annals_common.errors import BudgetTooSmallError
from annals_context.commands.summary_reading import ReadSummaries, events_of_period
from annals_context.domain.counting import Counter, available_for, margin_tokens
from annals_context.domain.events import Event
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import decompose
from annals_context.domain.summarising.kept import TimeRange
from annals_context.domain.summarising.pieces import Piece, pieces_of
from annals_context.domain.summarising.selecting import Limits
from annals_context.domain.summarising.summarise import summary_of_events, summary_of_summaries
from annals_context.domain.summarising.writing import LIMITS, Digest, least_tokens
from annals_context.ports import Caller
from annals_context.summary_ports import SummaryArchive

MAX_DIRECT_SEQS = 1_024
"""Ranges up to here are read event by event; of longer ones the summaries are summarised."""
MAX_PIECES = 200


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A validated request. `last_seq` None: to the end. `event_ids` and `when` exclude a range.

    `max_tokens` None: the level's own.
    """

    conversation_id: str
    branch: int
    first_seq: int
    last_seq: int | None
    event_ids: tuple[str, ...]
    when: TimeRange
    level: SummaryLevel
    focus: str
    max_tokens: int | None
    model: str


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary of the events from first_seq to last_seq; both are 0 without an event."""

    digest: Digest
    first_seq: int
    last_seq: int
    counter: Counter
    margin_tokens: int
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Source:
    """What there is to summarise: events, or summaries of them."""

    first_seq: int
    last_seq: int
    events: Sequence[Event] = ()
    parts: Sequence[Digest] = ()
    degraded: tuple[str, ...] = ()

    @property
    def pieces(self) -> list[Piece]:
        """Return every sentence."""
        told = [citation.piece for part in self.parts for citation in part.citations]
        return [*pieces_of(self.events), *told]

    def digest(self, limits: Limits, count: Callable[[str], int], focus: str) -> Digest:
        """Return the summary."""
        if self.parts:
            return summary_of_summaries(self.parts, limits, count, focus=focus)
        return summary_of_events(self.events, limits, count, focus=focus)


class Summarize:
    """Stores nothing itself; blocks that are missing are made and kept on the way."""

    def __init__(
        self,
        archive: SummaryArchive,
        read: ReadSummaries,
        counter_for: Callable[[str], Counter],
    ) -> None:
        self._archive, self._read, self._counter_for = archive, read, counter_for

    async def __call__(self, caller: Caller, asked: AskedPart) -> Summarized:
        """Raises BudgetTooSmallError when not a word fits, and what storage raises."""
        source = await self._source(caller, asked)
        return await asyncio.to_thread(self._summarized, asked, source)

    def _summarized(self, asked: AskedPart, source: _Source) -> Summarized:
        counter, own = self._counter_for(asked.model), LIMITS[asked.level]
        max_tokens = asked.max_tokens or own.max_tokens
        margin = margin_tokens(counter, max_tokens)
        pieces = MAX_PIECES if asked.max_tokens else own.max_pieces
        limits = Limits(max_tokens - margin, pieces)
        digest = source.digest(limits, counter.count, asked.focus)
        if not digest.text and source.pieces:
            least = least_tokens(source.pieces, limits, counter.count, focus=asked.focus)
            raise BudgetTooSmallError(
                budget=max_tokens, minimum=available_for(counter, least), field="max_tokens"
            )
        return Summarized(
            digest, source.first_seq, source.last_seq, counter, margin, source.degraded
        )

    async def _source(self, caller: Caller, asked: AskedPart) -> _Source:
        if asked.event_ids:
            return _of_events(
                await self._archive.events_by_id(caller, asked.conversation_id, asked.event_ids)
            )
        if not asked.when.is_open:
            return await self._period(caller, asked)
        return await self._range(caller, asked)

    async def _period(self, caller: Caller, asked: AskedPart) -> _Source:
        events, degraded = await events_of_period(
            self._archive, caller, asked.conversation_id, branch=asked.branch, when=asked.when
        )
        return _of_events(events, degraded)

    async def _range(self, caller: Caller, asked: AskedPart) -> _Source:
        source = await self._archive.source(
            caller, asked.conversation_id, branch=asked.branch, blocks=()
        )
        first = max(1, asked.first_seq)
        last = source.head_seq if asked.last_seq is None else min(asked.last_seq, source.head_seq)
        if last - first < MAX_DIRECT_SEQS:
            return _of_events(await self._events(caller, asked, first, last))
        return await self._long_range(caller, asked, first, last)

    async def _events(
        self, caller: Caller, asked: AskedPart, first_seq: int, last_seq: int
    ) -> list[Event]:
        if first_seq > last_seq:
            return []
        return await self._archive.events(
            caller,
            asked.conversation_id,
            branch=asked.branch,
            first_seq=first_seq,
            last_seq=last_seq,
        )

    async def _long_range(self, caller: Caller, asked: AskedPart, first: int, last: int) -> _Source:
        """Of whole blocks take what is kept, in detail, and at the ends summarise the events."""
        blocks = list(decompose(first, last))
        reading = await self._read.blocks(
            caller,
            asked.conversation_id,
            branch=asked.branch,
            level=SummaryLevel.DETAILED,
            wanted=lambda _head: [block for block in blocks if block.is_whole],
        )
        parts = {kept.block.first_seq: kept.digest for kept in reading.kept}
        count = self._counter_for("").count
        for end in (block for block in blocks if not block.is_whole):
            events = await self._events(caller, asked, end.first_seq, end.last_seq)
            parts[end.first_seq] = await asyncio.to_thread(
                summary_of_events, events, LIMITS[SummaryLevel.DETAILED], count
            )
        in_order = [parts[seq] for seq in sorted(parts)]
        return _Source(first, last, parts=in_order, degraded=reading.degraded)


def _of_events(events: Sequence[Event], degraded: tuple[str, ...] = ()) -> _Source:
    if not events:
        return _Source(0, 0, degraded=degraded)
    return _Source(events[0].seq, events[-1].seq, events, degraded=degraded)
