"""Leases that last as long as the work: nobody else begins what is still being mirrored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from itertools import groupby

import structlog

from annals_common.cancellation import pause
from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.indexing import OutboxEntry
from annals_storage.ports.outbox import Outbox

LEASE = timedelta(seconds=30)
RENEWALS_PER_LEASE = 3
"""Two may be missed before a lease expires."""
log = structlog.get_logger()


class Leases:
    """The leases of one indexer, named by its owner."""

    def __init__(self, outbox: Outbox, *, owner: str, lease: timedelta = LEASE) -> None:
        self._outbox, self._owner, self._lease = outbox, owner, lease

    async def claim(self, limit: int) -> list[OutboxEntry]:
        """Lease at most `limit` entries of any tenants."""
        return await self._outbox.claim(self._owner, limit=limit, lease=self._lease)

    @asynccontextmanager
    async def kept(self, entries: Sequence[OutboxEntry]) -> AsyncIterator[None]:
        """Renew the leases of these entries until the block ends, however long it takes."""
        renewing = asyncio.create_task(self._renew_forever(entries))
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _renew_forever(self, entries: Sequence[OutboxEntry]) -> None:
        while True:
            await pause(self._lease.total_seconds() / RENEWALS_PER_LEASE)
            await self._renew(entries)

    async def _renew(self, entries: Sequence[OutboxEntry]) -> None:
        for _, own in groupby(entries, key=lambda entry: entry.tenant_id):
            try:
                await self._outbox.renew(self._owner, list(own), lease=self._lease)
            except (DependencyUnavailableError, TimeoutError) as error:
                log.warning("leases not renewed", cause=str(error))
                return
