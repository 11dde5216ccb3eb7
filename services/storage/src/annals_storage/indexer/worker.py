"""The indexer's loop: claim, mirror, acknowledge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog

from annals_common.cancellation import pause
from annals_common.errors import (
    ColdStorageUnavailableError,
    DependencyUnavailableError,
    EngineUnavailableError,
)
from annals_common.failures import without_content
from annals_storage.domain.indexing import OutboxEntry, OutboxKind, OutboxTotals
from annals_storage.indexer.drift import DriftCheck
from annals_storage.indexer.leases import LEASE, Leases
from annals_storage.indexer.live import LiveMirror
from annals_storage.indexer.metrics import (
    INDEXER_FAILURES,
    LANE_LAG_SECONDS,
    LANE_PENDING,
    OUTBOX_LAG_SECONDS,
    OUTBOX_PARKED,
    OUTBOX_PENDING,
)
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.parts import by_lane_and_tenant, cut_by_bytes
from annals_storage.ports.outbox import Outbox

BATCH_EVENTS = 256
HOLD = timedelta(minutes=5)
"""How long entries whose PostgreSQL half is done wait for an engine that is down, at most."""
IDLE_SECONDS = 0.05
OUTAGE_SECONDS = 1.0
TOTALS_SECONDS = 1.0
RELEASE_SECONDS = 2.0
log = structlog.get_logger()


class Indexer:
    """Runs until cancelled. Any number may run side by side; `owner` tells their leases apart."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        mirror: Mirror | LiveMirror,
        owner: str,
        lease: timedelta = LEASE,
        drift: DriftCheck | None = None,
    ) -> None:
        self._outbox, self._mirror, self._owner = outbox, mirror, owner
        self._drift = drift
        self._leases = Leases(outbox, owner=owner, lease=lease)
        self._probe_at: float | None = None
        """While the engine is down: when to ask it next, by time.monotonic."""

    async def run(self) -> None:
        """Mirror forever. Leases left by an earlier run under the same name are taken over.

        At its end, leases are given back, so that others need not wait until they expire.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._work())
                tasks.create_task(measure(self._outbox))
                if self._drift is not None:
                    tasks.create_task(self._drift.run())
        finally:
            with suppress(DependencyUnavailableError, TimeoutError):
                await asyncio.wait_for(self._outbox.release(self._owner), RELEASE_SECONDS)

    async def _work(self) -> None:
        released = False
        while True:
            try:
                released = released or await self._outbox.release(self._owner) >= 0
                wait_seconds = 0.0 if await self.step() else IDLE_SECONDS
            except (DependencyUnavailableError, TimeoutError) as error:
                log.warning("indexer waits", cause=str(error))
                # What it was at is given back first, and need not wait for its lease to expire.
                released, wait_seconds = False, OUTAGE_SECONDS
            await pause(wait_seconds)

    async def step(self) -> int:
        """Claim one batch and mirror it; return how many entries were claimed."""
        await self._end_outage()
        entries = await self._leases.claim(BATCH_EVENTS)
        async with self._leases.kept(entries):
            for own in by_lane_and_tenant(entries):
                for part in cut_by_bytes(own, await self._text_bytes(own)):
                    await self._settle(part)
        return len(entries)

    async def _text_bytes(self, entries: Sequence[OutboxEntry]) -> Mapping[UUID, int]:
        """Return what there is to read of each event. Of one alone it makes no difference."""
        events = [entry.key for entry in entries if entry.kind is OutboxKind.EVENT]
        if len(events) <= 1:
            return {}
        return await self._outbox.text_bytes(entries[0].tenant_id, events)

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
            await self._outbox.fail(self._owner, entries, without_content(error))
            return
        middle = len(entries) // 2
        await self._settle(entries[:middle])
        await self._settle(entries[middle:])


async def measure(outbox: Outbox) -> None:
    """Keep the figures of the outbox true until cancelled. Processes that only serve do so too:
    what waits is seen even when nobody mirrors.
    """
    while True:
        started_s = time.monotonic()
        try:
            _show(await outbox.totals())
        except (DependencyUnavailableError, TimeoutError):
            await pause(OUTAGE_SECONDS)
            continue
        # A long outbox takes long to count: never more than a twentieth of the time.
        counting_s = time.monotonic() - started_s
        await pause(max(TOTALS_SECONDS, 20 * counting_s))


def _show(lanes: Sequence[OutboxTotals]) -> None:
    for lane in lanes:
        LANE_PENDING.labels(lane.priority.name.lower()).set(lane.pending)
        LANE_LAG_SECONDS.labels(lane.priority.name.lower()).set(lane.lag_seconds)
    OUTBOX_PENDING.set(sum(lane.pending for lane in lanes))
    OUTBOX_PARKED.set(sum(lane.parked for lane in lanes))
    OUTBOX_LAG_SECONDS.set(max((lane.lag_seconds for lane in lanes), default=0.0))
