"""The indexer's loop: claim, mirror, acknowledge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from uuid import UUID

import structlog

from annals_common.errors import (
    ColdStorageUnavailableError,
    DependencyUnavailableError,
    EngineUnavailableError,
)
from annals_storage.domain.indexing import OutboxEntry
from annals_storage.indexer.metrics import (
    INDEXER_FAILURES,
    OUTBOX_LAG_SECONDS,
    OUTBOX_PARKED,
    OUTBOX_PENDING,
)
from annals_storage.indexer.mirror import Mirror
from annals_storage.ports.outbox import Outbox

BATCH_EVENTS = 256
LEASE = timedelta(seconds=30)
HOLD = timedelta(minutes=5)
"""How long entries whose PostgreSQL half is done wait for an engine that is down, at most."""
IDLE_SECONDS = 0.05
OUTAGE_SECONDS = 1.0
TOTALS_SECONDS = 1.0
RELEASE_SECONDS = 2.0
log = structlog.get_logger()


def _is_cancelled() -> bool:
    # Asked too, because a library below may have swallowed the cancellation.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Indexer:
    """Runs until cancelled. Any number may run side by side; `owner` tells their leases apart."""

    def __init__(self, *, outbox: Outbox, mirror: Mirror, owner: str) -> None:
        self._outbox, self._mirror, self._owner = outbox, mirror, owner
        self._probe_at: float | None = None
        """While the engine is down: when to ask it next, by time.monotonic."""

    async def run(self) -> None:
        """Mirror forever. Leases left by an earlier run under the same name are taken over.

        At its end, leases are given back, so that others need not wait until they expire.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._work())
                tasks.create_task(self._measure())
        finally:
            with suppress(DependencyUnavailableError, TimeoutError):
                await asyncio.wait_for(self._outbox.release(self._owner), RELEASE_SECONDS)

    async def _work(self) -> None:
        released = False
        while not _is_cancelled():
            try:
                released = released or await self._outbox.release(self._owner) >= 0
                pause = 0.0 if await self.step() else IDLE_SECONDS
            except DependencyUnavailableError as error:
                log.warning("indexer waits", cause=error.message)
                pause = OUTAGE_SECONDS
            await asyncio.sleep(pause)

    async def step(self) -> int:
        """Claim one batch and mirror it; return how many entries were claimed."""
        await self._end_outage()
        entries = await self._outbox.claim(self._owner, limit=BATCH_EVENTS, lease=LEASE)
        entries.sort(key=lambda entry: (entry.tenant_id, entry.key))
        for _, own in groupby(entries, key=lambda entry: entry.tenant_id):
            await self._settle(list(own))
        return len(entries)

    async def _settle(self, entries: Sequence[OutboxEntry]) -> None:
        try:
            await self._mirror.refresh(entries)
        except ColdStorageUnavailableError as error:
            await self._pause_cold(entries, error)
        except EngineUnavailableError as error:
            await self._hold(entries, error)
        except DependencyUnavailableError:
            INDEXER_FAILURES.labels("dependency").inc()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the other entries go on
            await self._isolate(entries, error)
        else:
            await self._outbox.acknowledge(self._owner, entries)

    async def _hold(self, entries: Sequence[OutboxEntry], error: EngineUnavailableError) -> None:
        """Have what PostgreSQL holds by now wait for the engine; what comes after goes on."""
        INDEXER_FAILURES.labels("dependency").inc()
        if self._probe_at is None:
            log.warning("indexer goes on without the engine", cause=error.message)
            self._probe_at = time.monotonic() + OUTAGE_SECONDS
        await self._outbox.hold(self._owner, entries, HOLD)

    async def _end_outage(self) -> None:
        if self._probe_at is None or time.monotonic() < self._probe_at:
            return
        self._probe_at = time.monotonic() + OUTAGE_SECONDS
        if await self._mirror.engine_answers():
            await self._outbox.release(self._owner)
            self._probe_at = None

    async def _pause_cold(
        self, entries: Sequence[OutboxEntry], error: ColdStorageUnavailableError
    ) -> None:
        """Pause the conversations whose words cannot be read; everybody else's go on."""
        INDEXER_FAILURES.labels("cold_storage").inc()
        rooms: dict[UUID, list[OutboxEntry]] = {}
        for entry in entries:
            rooms.setdefault(entry.conversation_id, []).append(entry)
        if len(rooms) == 1:
            await self._outbox.fail(self._owner, entries, error.message)
            return
        for own in rooms.values():
            await self._settle(own)

    async def _isolate(self, entries: Sequence[OutboxEntry], error: Exception) -> None:
        """Find the entry that fails by halving; pause it with its error."""
        INDEXER_FAILURES.labels("entry").inc()
        if len(entries) == 1:
            log.error("entry failed", key=str(entries[0].key), exc_info=error)
            await self._outbox.fail(self._owner, entries, repr(error)[:500])
            return
        middle = len(entries) // 2
        await self._settle(entries[:middle])
        await self._settle(entries[middle:])

    async def _measure(self) -> None:
        while not _is_cancelled():
            try:
                totals = await self._outbox.totals()
            except DependencyUnavailableError:
                await asyncio.sleep(OUTAGE_SECONDS)
                continue
            OUTBOX_PENDING.set(totals.pending)
            OUTBOX_PARKED.set(totals.parked)
            OUTBOX_LAG_SECONDS.set(totals.lag_seconds)
            await asyncio.sleep(TOTALS_SECONDS)
