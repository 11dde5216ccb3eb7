"""Answers with the summaries that bear on a query."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from annals_common.errors import (
    AnnalsError,
    BudgetTooSmallError,
    DeadlineExceededError,
    DependencyUnavailableError,
)
from annals_context.commands.gathering import SEARCH_TIMEOUT, SEARCH_UNAVAILABLE
from annals_context.commands.summary_reading import ReadSummaries, events_of_period
from annals_context.domain.counting import Counter, available_for, margin_tokens
from annals_context.domain.events import Event
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.answering import (
    Answer,
    Candidate,
    answer,
    scored,
    smallest_budget,
)
from annals_context.domain.summarising.blocks import Block, block_of
from annals_context.domain.summarising.kept import FoundEvent, KeptSummary, TimeRange
from annals_context.domain.summarising.summarise import summary_of_events
from annals_context.domain.summarising.writing import LIMITS
from annals_context.ports import Caller
from annals_context.summary_ports import SummaryArchive

MAX_FOUND = 100
MAX_CONVERSATIONS = 10
"""Looked into when none is named."""


@dataclass(frozen=True, slots=True)
class AskedSummary:
    """A validated request. Without conversation_ids the search says where to look."""

    query: str
    conversation_ids: tuple[str, ...]
    when: TimeRange
    max_tokens: int
    level: SummaryLevel
    model: str


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """The answer and what it was made with."""

    answer: Answer
    counter: Counter
    margin_tokens: int
    degraded: tuple[str, ...]


@dataclass(slots=True)
class _Degraded:
    causes: dict[str, None] = field(default_factory=dict)

    def add(self, *causes: str) -> None:
        self.causes.update(dict.fromkeys(causes))


class GetContextSummary:
    """Searches where to look, reads what is kept, makes what is missing, and fits."""

    def __init__(
        self,
        archive: SummaryArchive,
        read: ReadSummaries,
        counter_for: Callable[[str], Counter],
    ) -> None:
        self._archive, self._read, self._counter_for = archive, read, counter_for

    async def __call__(self, caller: Caller, asked: AskedSummary) -> ContextSummary:
        """Raises BudgetTooSmallError and what storage raises; a failed search only degrades."""
        degraded = _Degraded()
        found = await self._found(caller, asked, degraded)
        rooms = asked.conversation_ids or _rooms(found)
        gathered = await asyncio.gather(
            *(self._candidates(caller, asked, room, found, degraded) for room in rooms)
        )
        candidates = [candidate for part in gathered for candidate in part]
        counter = self._counter_for(asked.model)
        margin = margin_tokens(counter, asked.max_tokens)
        made = await asyncio.to_thread(
            answer, candidates, asked.max_tokens - margin, counter.count, query=asked.query
        )
        if candidates and not made.text:
            minimum = smallest_budget(
                candidates, asked.max_tokens - margin, counter.count, query=asked.query
            )
            raise BudgetTooSmallError(
                budget=asked.max_tokens,
                minimum=available_for(counter, minimum),
                field="max_tokens",
            )
        return ContextSummary(made, counter, margin, tuple(degraded.causes))

    async def _found(
        self, caller: Caller, asked: AskedSummary, degraded: _Degraded
    ) -> list[FoundEvent]:
        try:
            found, causes = await self._archive.find(
                caller, asked.query, asked.conversation_ids, when=asked.when, limit=MAX_FOUND
            )
        except DeadlineExceededError:
            degraded.add(SEARCH_TIMEOUT)
            return []
        except AnnalsError as error:
            if error.reason != DependencyUnavailableError.reason:
                raise
            degraded.add(SEARCH_UNAVAILABLE)
            return []
        degraded.add(*causes)
        return found

    async def _candidates(
        self,
        caller: Caller,
        asked: AskedSummary,
        room: str,
        found: Sequence[FoundEvent],
        degraded: _Degraded,
    ) -> list[Candidate]:
        own = [hit for hit in found if hit.conversation_id == room]
        if asked.when.is_open:
            seqs = [hit.seq for hit in own]
            reading = await self._read.cover(caller, room, level=asked.level, around=seqs)
            degraded.add(*reading.degraded)
            kept = reading.kept
        else:
            kept = await self._of_period(caller, asked, room, degraded)
        return scored(room, kept, asked.query, own)

    async def _of_period(
        self, caller: Caller, asked: AskedSummary, room: str, degraded: _Degraded
    ) -> list[KeptSummary]:
        events, causes = await events_of_period(
            self._archive, caller, room, branch=0, when=asked.when
        )
        degraded.add(*causes)
        count = self._counter_for("").count
        return await asyncio.to_thread(_by_block, events, asked.level, count)


def _rooms(found: Sequence[FoundEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.conversation_id for hit in found))[:MAX_CONVERSATIONS]


def _by_block(
    events: Sequence[Event], level: SummaryLevel, count: Callable[[str], int]
) -> list[KeptSummary]:
    """Summarise the events of a period, those of each block by themselves."""
    kept = []
    for _, group in groupby(events, key=lambda event: block_of(event.seq, event.seq).first_seq):
        own = list(group)
        digest = summary_of_events(own, LIMITS[level], count)
        if digest.text:
            kept.append(KeptSummary(Block(0, own[0].seq, own[-1].seq), level, digest))
    return kept
