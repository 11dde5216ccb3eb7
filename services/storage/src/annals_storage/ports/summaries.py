"""Where summaries are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from annals_storage.domain.summaries import (
    NewSummary,
    NewSummaryRun,
    Summary,
    SummaryQuery,
    SummaryRun,
    SummarySource,
)
from annals_storage.ports.paging import PageCursor


class SummaryStore(Protocol):
    """Summaries of a tenant. Those of deleted conversations, and outdated ones, are not visible.

    Every method that names a conversation or a branch raises ResourceNotFoundError without it.
    """

    async def source(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        branch: int | None,
        ranges: Sequence[tuple[int, int]],
    ) -> SummarySource:
        """Return what there is to summarise. `ranges`: (first_seq, last_seq), both included."""

    async def put(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        branch: int | None,
        summaries: Sequence[NewSummary],
        run: NewSummaryRun | None,
    ) -> tuple[list[Summary], SummaryRun | None]:
        """Store all of them and the run, or nothing; return them in order, without text.

        Raises SummarySourceChangedError, and ResourceNotFoundError for a cited event.
        """

    async def get(self, tenant_id: UUID, summary_id: UUID) -> Summary | None:
        """Return the visible one."""

    async def page(self, tenant_id: UUID, query: SummaryQuery) -> list[Summary]:
        """Return one page, by first event."""

    async def delete(self, tenant_id: UUID, summary_id: UUID) -> bool:
        """Delete it for good, outdated or not; return whether there was one."""

    async def runs(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> list[SummaryRun]:
        """Return one page of the runs, newest first."""
