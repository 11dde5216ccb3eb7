"""Builds a generation of the mirror while another one serves.

Nothing is written to the new collection here. Its events and memories are put into the outbox once
more, a few at a time, and indexers mirror them as they mirror everything, under the same leases
and into every generation there is. So there is nobody who could bring back what was deleted, and a
build that is stopped anywhere goes on from there (ADR 0011).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog

from annals_common.cancellation import pause
from annals_storage.commands.generations import Generations, OpenGeneration
from annals_storage.commands.mending import MendMirror
from annals_storage.commands.mirror_report import MirrorParts, MirrorReport
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.generations import BuildPosition, MirrorGeneration
from annals_storage.domain.mirror import Drift
from annals_storage.domain.tenancy import Tenant
from annals_storage.ports.generations import GenerationStore, SourceStore
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.tenancy import TenantStore

PAGE_SOURCES = 64
"""How many are enqueued at a time; two pages may wait. What is written now waits no longer than
that behind them."""
PAGE_TENANTS = 1_000
POLL_SECONDS = 0.05
HELD_SECONDS = 1.0
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BuildParts:
    """What a build works with.

    `mirror`: what is compared of a generation before it serves; what is parked counts as waiting.
    """

    store: GenerationStore
    sources: SourceStore
    tenants: TenantStore
    outbox: Outbox
    generations: Generations
    mirror: Callable[[OpenGeneration], MirrorParts]


class BuildGeneration:
    """One build, from wherever it was left to the moment the generation serves."""

    def __init__(self, parts: BuildParts) -> None:
        self._parts, self._store, self._sources = parts, parts.store, parts.sources

    async def __call__(self, generation: MirrorGeneration) -> None:
        """Return when it serves, or was cancelled. Raises DependencyUnavailableError."""
        number = generation.number
        if generation.sources_total is None:
            parked = await self._parked()
            await self._store.count(number, await self._count(), parked)
        await self._walk(number)
        await self._settle(number)

    async def _count(self) -> int:
        counts = [await self._sources.count(t.tenant_id) async for t in self._tenants(None)]
        return sum(counts)

    async def _walk(self, number: int) -> None:
        build = await self._store.build(number)
        if build is None or build.walked_at is not None:
            return
        former: tuple[UUID, list[UUID]] | None = None
        async for tenant, keys in self._pages(build.position):
            if former is not None:
                await self._drained(*former)
            former = tenant.tenant_id, keys
            if await self._store.build(number) is None:
                return
            position = BuildPosition(tenant.created_at, tenant.tenant_id, keys[-1])
            await self._store.advance(number, position, len(keys))
        await self._store.walked(number)

    async def _pages(
        self, position: BuildPosition | None
    ) -> AsyncIterator[tuple[Tenant, list[UUID]]]:
        """Enqueue page after page, and yield what was enqueued."""
        async for tenant in self._tenants(position):
            begun = position is not None and tenant.tenant_id == position.tenant_id
            after = position.after if position and begun else None
            while keys := await self._sources.enqueue_page(
                tenant.tenant_id, after=after, limit=PAGE_SOURCES
            ):
                yield tenant, keys
                after = keys[-1]

    async def _tenants(self, position: BuildPosition | None) -> AsyncIterator[Tenant]:
        """Yield the tenants from that one on, itself included."""
        cursor = None
        while page := await self._parts.tenants.page(cursor=cursor, limit=PAGE_TENANTS):
            for tenant in page:
                if position is None or _key(tenant) >= (
                    position.tenant_created_at, position.tenant_id
                ):  # fmt: skip
                    yield tenant
            cursor = _key(page[-1])

    async def _drained(self, tenant_id: UUID, keys: Sequence[UUID]) -> None:
        # The indexers may be in other processes: nothing here would tell.
        while await self._sources.any_waiting(tenant_id, keys):
            await pause(POLL_SECONDS)

    async def _settle(self, number: int) -> None:
        """Have it serve once everything of the walk is mirrored and a verification says so."""
        while (build := await self._store.build(number)) and build.walked_at:
            waiting = await self._sources.waiting(build.walked_at)
            parked = await self._parked()
            if waiting:
                problem = ""
            elif parked > build.parked_before:
                problem = f"{parked - build.parked_before} changes were parked since it was begun"
            else:
                problem = await self._compared(number)
                if not problem:
                    await self._store.serve(number)
                    log.info("generation serves", generation=number)
                    return
            await self._store.note(number, problem)
            await pause(HELD_SECONDS if problem else POLL_SECONDS)

    async def _parked(self) -> int:
        return sum(lane.parked for lane in await self._parts.outbox.totals())

    async def _compared(self, number: int) -> str:
        """Compare it with PostgreSQL and mend it; return what differed."""
        opened = self._parts.generations.number(number)
        if opened is None:
            return "it is not open here"
        parts = self._parts.mirror(opened)
        report = await VerifyMirror(parts, mend=MendMirror(parts))()
        return "" if report.is_clean else _described(report)


def _key(tenant: Tenant) -> tuple[datetime, UUID]:
    return tenant.created_at, tenant.tenant_id


def _described(report: MirrorReport) -> str:
    found = {kind.value: getattr(report, kind) for kind in Drift}
    return "mended: " + ", ".join(f"{count} {kind}" for kind, count in found.items() if count)
