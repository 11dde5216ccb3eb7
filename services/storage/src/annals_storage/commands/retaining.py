"""Applies retention policies: archives, moves to cold storage, erases, removes old logs.

One conversation at a time and in small batches; safe to interrupt and to run side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog

from annals_common.errors import DependencyUnavailableError, NotConfiguredError
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.erasing import Erase
from annals_storage.commands.remembering import utc_now
from annals_storage.domain.retention import MaintenanceDue
from annals_storage.ports.lifecycle import ReceiptStore, RetentionStore
from annals_storage.ports.tenancy import TenantStore

BATCH_CONVERSATIONS = 100
BATCH_LOGS = 1_000
PAGE_TENANTS = 100
REPORTED = (
    "tenants",
    "tenants_busy",
    "archived_conversations",
    "cold_conversations",
    "cold_events",
    "cold_stored_bytes",
    "resumed_erasures",
    "erased_conversations",
    "provider_logs",
    "search_log",
    "cached_contexts",
    "orphan_objects",
    "failures",
)
"""What a maintenance counts."""
Progress = Callable[[str], None]
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MaintenanceParts:
    """What a maintenance works with."""

    tenants: TenantStore
    retention: RetentionStore
    receipts: ReceiptStore
    cold: ColdStorage
    erase: Erase


class Maintain:
    """One round of maintenance. `now` is the moment ages are measured at."""

    def __init__(
        self,
        parts: MaintenanceParts,
        *,
        now: Callable[[], datetime] = utc_now,
        progress: Progress = lambda _: None,
    ) -> None:
        self._parts, self._now, self._progress = parts, now, progress
        self._counts: Counter[str] = Counter()

    async def __call__(self, tenant_id: UUID | None = None) -> dict[str, int]:
        """Maintain one tenant or all; return what was done."""
        async for each in self._tenant_ids(tenant_id):
            async with self._parts.retention.tenant_lock(each) as held:
                if not held:
                    self._counts["tenants_busy"] += 1
                    continue
                self._counts["tenants"] += 1
                await self._maintain(each)
                self._progress(f"{each}: done")
        return self._report()

    async def dry_run(self, tenant_id: UUID | None = None) -> dict[str, int]:
        """Return what would be done; conversations, not events, are counted for cold storage."""
        async for each in self._tenant_ids(tenant_id):
            self._counts["tenants"] += 1
            await self._foresee(each)
        return self._report()

    async def _maintain(self, tenant_id: UUID) -> None:
        await self._resume(tenant_id)
        now = self._now()
        # What is to be erased need not be moved before.
        await self._each_due(tenant_id, MaintenanceDue.ERASE, now, self._erase)
        while count := await self._parts.retention.archive(
            tenant_id, now, limit=BATCH_CONVERSATIONS
        ):
            self._counts["archived_conversations"] += count
        await self._each_due(tenant_id, MaintenanceDue.COLD, now, self._move)
        await self._expire_logs(tenant_id, now)
        for conversation_id in await self._parts.cold.folders(tenant_id):
            orphans = await self._parts.cold.remove_orphans(tenant_id, conversation_id)
            self._counts["orphan_objects"] += orphans

    async def _foresee(self, tenant_id: UUID) -> None:
        now, retention = self._now(), self._parts.retention
        names = {
            MaintenanceDue.ARCHIVE: "archived_conversations",
            MaintenanceDue.COLD: "cold_conversations",
            MaintenanceDue.ERASE: "erased_conversations",
        }
        for kind, name in names.items():
            self._counts[name] += await retention.count_due(tenant_id, kind, now)
        self._counts.update(await retention.count_expired_logs(tenant_id, now))
        for conversation_id in await self._parts.cold.folders(tenant_id):
            self._counts["orphan_objects"] += await self._parts.cold.remove_orphans(
                tenant_id, conversation_id, dry_run=True
            )

    async def _resume(self, tenant_id: UUID) -> None:
        for receipt in await self._parts.receipts.list_unfinished(
            tenant_id, limit=BATCH_CONVERSATIONS
        ):
            if await self._parts.erase.resume(tenant_id, receipt) is not None:
                self._counts["resumed_erasures"] += 1

    async def _each_due(
        self,
        tenant_id: UUID,
        kind: MaintenanceDue,
        now: datetime,
        act: Callable[[UUID, UUID], Awaitable[None]],
    ) -> None:
        after: UUID | None = None
        while found := await self._parts.retention.due(
            tenant_id, kind, now, after=after, limit=BATCH_CONVERSATIONS
        ):
            for conversation_id in found:
                await act(tenant_id, conversation_id)
            after = found[-1]
            self._progress(f"{tenant_id}: {kind.value}, {dict(self._counts)}")

    async def _erase(self, tenant_id: UUID, conversation_id: UUID) -> None:
        await self._parts.erase.conversation(tenant_id, conversation_id)
        self._counts["erased_conversations"] += 1

    async def _move(self, tenant_id: UUID, conversation_id: UUID) -> None:
        try:
            moved = await self._parts.cold.move(tenant_id, conversation_id)
        except (NotConfiguredError, DependencyUnavailableError) as error:
            # The words stay where they are; the rest of the maintenance does not need them moved.
            self._counts["failures"] += 1
            log.warning("not moved", conversation_id=str(conversation_id), cause=error.message)
            return
        self._counts["cold_conversations"] += 1
        self._counts["cold_events"] += moved.event_count
        self._counts["cold_stored_bytes"] += moved.stored_bytes

    async def _expire_logs(self, tenant_id: UUID, now: datetime) -> None:
        while True:
            gone = await self._parts.retention.expire_logs(tenant_id, now, limit=BATCH_LOGS)
            self._counts.update(gone)
            if not any(gone.values()):
                return

    async def _tenant_ids(self, only: UUID | None) -> AsyncIterator[UUID]:
        if only is not None:
            yield (await self._parts.tenants.get(only)).tenant_id
            return
        cursor = None
        while page := await self._parts.tenants.page(cursor=cursor, limit=PAGE_TENANTS):
            for tenant in page:
                yield tenant.tenant_id
            cursor = (page[-1].created_at, page[-1].tenant_id)

    def _report(self) -> dict[str, int]:
        return {name: self._counts[name] for name in REPORTED}
