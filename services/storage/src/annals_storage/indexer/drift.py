"""Whether the mirror has drifted from PostgreSQL, tenant after tenant, at a bounded cost.

Counts only: `annals-storage verify` compares point by point.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import structlog

from annals_common.cancellation import pause
from annals_common.errors import DependencyUnavailableError
from annals_storage.indexer.metrics import DRIFT_CHECKED_TENANTS, DRIFT_POINTS
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.tenancy import TenantStore
from annals_storage.ports.vectors import VectorIndex

PAUSE_SECONDS = 10.0
IDLE_SHARE = 20
"""Pauses are at least so many times as long as the look before them."""
LOOKS = 3
"""What differs is looked at again, as it may have been written in between."""
log = structlog.get_logger()


class DriftCheck:
    """Counts chunks and points of a tenant whose outbox is empty, one tenant at a time."""

    def __init__(
        self,
        *,
        tenants: TenantStore,
        outbox: Outbox,
        vectors: VectorIndex,
        model: Callable[[], str],
    ) -> None:
        """`vectors` as they serve; `model`: whose embeddings they hold."""
        self._tenants, self._outbox, self._vectors = tenants, outbox, vectors
        self._model = model
        self._cursor: tuple[datetime, UUID] | None = None
        self._drifted: dict[UUID, int] = {}
        self._unmet: set[UUID] = set()

    async def run(self) -> None:
        """Check for ever, a tenant every ten seconds."""
        while True:
            started_s = time.monotonic()
            try:
                await self.step()
            except (DependencyUnavailableError, TimeoutError) as error:
                log.warning("drift not checked", cause=str(error))
            await pause(max(PAUSE_SECONDS, IDLE_SHARE * (time.monotonic() - started_s)))

    async def step(self) -> None:
        """Check the next tenant, after the last one the first; not one that is written to."""
        page = await self._tenants.page(cursor=self._cursor, limit=1)
        if not page:
            self._end_round()
            return
        self._cursor = (page[0].created_at, page[0].tenant_id)
        self._unmet.discard(page[0].tenant_id)
        points = await self._surplus(page[0].tenant_id)
        if points is not None:
            self._note(page[0].tenant_id, points)

    def _end_round(self) -> None:
        """Forget tenants that drifted and were not met again: they were erased."""
        for tenant_id in self._unmet:
            self._drifted.pop(tenant_id, None)
        self._cursor, self._unmet = None, set(self._drifted)
        self._show()

    async def _surplus(self, tenant_id: UUID) -> int | None:
        """Return points less chunks; None when the tenant is being written to."""
        points = await self._look(tenant_id)
        for _ in range(LOOKS - 1):
            if not points:
                break
            if await self._look(tenant_id) != points:
                return None
        return points

    async def _look(self, tenant_id: UUID) -> int | None:
        if (await self._outbox.backlog(tenant_id)).pending:
            return None
        chunks = await self._outbox.count_chunks(tenant_id, self._model())
        points = await self._vectors.count_points(tenant_id)
        waiting = (await self._outbox.backlog(tenant_id)).pending
        return None if waiting else points - chunks

    def _note(self, tenant_id: UUID, points: int) -> None:
        DRIFT_CHECKED_TENANTS.inc()
        self._drifted.pop(tenant_id, None)
        if points:
            self._drifted[tenant_id] = points
            log.warning("mirror drifted", drifted_tenant_id=str(tenant_id), points=points)
        self._show()

    def _show(self) -> None:
        DRIFT_POINTS.set(sum(map(abs, self._drifted.values())))
