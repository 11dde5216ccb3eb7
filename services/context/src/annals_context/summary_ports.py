"""What making and reading summaries needs of storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from annals_context.domain.events import Event
from annals_context.domain.material import SummaryLevel
from annals_context.domain.summarising.blocks import Block
from annals_context.domain.summarising.kept import (
    FoundEvent,
    KeptSummary,
    MadeSummary,
    SummaryRun,
    SummarySource,
    TimeRange,
)
from annals_context.ports import Caller


class SummaryArchive(Protocol):
    """What summaries are made of and where they are kept. `branch` 0: the current one.

    Every method raises AnnalsError as storage did.
    """

    async def source(
        self, caller: Caller, conversation_id: str, *, branch: int, blocks: Sequence[Block]
    ) -> SummarySource:
        """Return what there is to summarise."""

    async def events(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        first_seq: int,
        last_seq: int,
    ) -> list[Event]:
        """Return the events of a range, both ends included, oldest first."""

    async def newest_events(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        when: TimeRange,
        limit: int,
    ) -> list[Event]:
        """Return the newest events of a time range, oldest first."""

    async def events_by_id(
        self, caller: Caller, conversation_id: str, event_ids: Sequence[str]
    ) -> list[Event]:
        """Return these events of a conversation, oldest first. Raises without one of them."""

    async def list_kept(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        within: Block | None = None,
        height: int | None = None,
        level: SummaryLevel | None = None,
    ) -> list[KeptSummary]:
        """Return what holds and is as we make it, by first event: without text, all of them; else
        those of one height and level within a block.
        """

    async def put(
        self,
        caller: Caller,
        conversation_id: str,
        *,
        branch: int,
        summaries: Sequence[MadeSummary],
        run: SummaryRun | None = None,
    ) -> None:
        """Store all of them or none; storage refuses what changed since source() was asked."""

    async def find(
        self,
        caller: Caller,
        query: str,
        conversation_ids: Sequence[str],
        *,
        when: TimeRange,
        limit: int,
    ) -> tuple[list[FoundEvent], tuple[str, ...]]:
        """Search these conversations, or all; return hits, best first, and what degraded them."""
