"""Compares the mirror with PostgreSQL, in bounded memory, and has it mended or made anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from annals_common.errors import ResourceNotFoundError
from annals_storage.commands.mending import Mended, MendMirror
from annals_storage.commands.mirror_comparing import MirrorComparison
from annals_storage.commands.mirror_report import MirrorParts, MirrorReport, Progress
from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.tenancy import TenantStore

PAGE = 1_000
PROGRESS_CHUNKS = 100_000
KNOWN_TENANTS = 100_000
"""How many are remembered while points of nobody are looked for."""


class VerifyMirror:
    """One verification. With `mend`, what differs is mended as it is found.

    May run while the mirror is written to: what seems to differ is looked at again.
    """

    def __init__(
        self,
        parts: MirrorParts,
        *,
        mend: MendMirror | None = None,
        progress: Progress = lambda _: None,
    ) -> None:
        self._parts, self._mend, self._progress = parts, mend, progress
        self._report = MirrorReport()
        self._points = 0
        self._known: set[str] = set()

    async def __call__(self, tenant_id: UUID | None = None) -> MirrorReport:
        """Compare one tenant or all. Raises ResourceNotFoundError for a tenant there is not.

        Points of tenants there are not are looked for only when all are compared.
        """
        if tenant_id is not None:
            await self._parts.tenants.get(tenant_id)
            await self._tenant(tenant_id)
            return self._report
        async for each in _tenant_ids(self._parts.tenants):
            await self._tenant(each)
        # Counting is cheap, reading every point is not.
        if self._report.deleted or await self._parts.vectors.audit.count() != self._points:
            await self._foreign()
        return self._report

    async def _tenant(self, tenant_id: UUID) -> None:
        comparison = MirrorComparison(
            self._parts, tenant_id, row_read=self._count_row, point_read=self._count_point
        )
        async for differences in comparison.differences():
            for each in differences:
                self._report.add(each.kind, each.point_id)
            if self._mend and differences:
                self._note(await self._mend.tenant(tenant_id, differences))
        backlog = await self._parts.outbox.backlog(tenant_id)
        self._report.tenants += 1
        self._report.pending += backlog.pending
        self._report.parked += backlog.parked
        self._progress(f"{tenant_id}: done")

    def _count_row(self) -> None:
        self._report.chunks += 1
        if self._report.chunks % PROGRESS_CHUNKS == 0:
            self._progress(f"{self._report.chunks} chunks compared")

    def _count_point(self) -> None:
        self._points += 1

    async def _foreign(self) -> None:
        """Find points whose tenant there is not."""
        audit, after = self._parts.vectors.audit, None
        self._progress("looking for points of tenants that there are not")
        while page := await audit.page(after=after, limit=PAGE):
            after = page[-1].point_id
            suspects = [point.point_id for point in await self._of_nobody(page)]
            found = await self._of_nobody(await audit.get(suspects))
            for point in found:
                self._report.add(Drift.FOREIGN, point.point_id)
            if self._mend and found:
                self._note(await self._mend.foreign(found))

    async def _of_nobody(self, points: Sequence[StoredPoint]) -> list[StoredPoint]:
        if len(self._known) > KNOWN_TENANTS:
            self._known.clear()
        named = {point.tenant for point in points} - self._known
        unknown = {tenant for tenant in named if not await self._is_ours(tenant)}
        return [point for point in points if point.tenant in unknown]

    async def _is_ours(self, tenant: str | None) -> bool:
        """Whether this is a tenant, or one whose erasure waits for the engine."""
        try:
            tenant_id = UUID(tenant)
        except (TypeError, ValueError):
            return False
        if str(tenant_id) != tenant:
            return False
        try:
            await self._parts.tenants.get(tenant_id)
        except ResourceNotFoundError:
            return (await self._parts.outbox.backlog(tenant_id)).pending > 0
        self._known.add(tenant)
        return True

    def _note(self, mended: Mended) -> None:
        self._report.deleted += mended.deleted
        self._report.enqueued += mended.enqueued


async def reindex(tenants: TenantStore, outbox: Outbox) -> int:
    """Have every conversation mirrored again, as after the loss of the engine's data.

    Return how many conversations were enqueued; the indexer does the rest.
    """
    return sum([await outbox.enqueue_tenant(tenant_id) async for tenant_id in _tenant_ids(tenants)])


async def _tenant_ids(tenants: TenantStore) -> AsyncIterator[UUID]:
    cursor = None
    while page := await tenants.page(cursor=cursor, limit=PAGE):
        for tenant in page:
            yield tenant.tenant_id
        cursor = (page[-1].created_at, page[-1].tenant_id)
