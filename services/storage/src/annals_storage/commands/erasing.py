"""Erases for good, leaves a receipt, and finishes what was interrupted.

Every step is safe to repeat. A call finds the receipt of an interrupted call of its subject,
goes through all steps again and adds to its counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from prometheus_client import Counter

from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_common.ids import uuid7
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.remembering import utc_now
from annals_storage.domain.erasure import (
    COPIES_IN_FORKS,
    Counts,
    ErasureScope,
    Receipt,
    user_subject,
)
from annals_storage.ports.lifecycle import ErasureStore, MirrorErasure, ReceiptStore
from annals_storage.ports.tenancy import TenantStore

BATCH_EVENTS = 2_000
BATCH_CONVERSATIONS = 100
ERASURES = Counter("annals_erasures_total", "Completed erasures.", ["scope"])
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ErasureAdapters:
    """What an erasure reaches: rows, receipts, the mirror, cold storage, the registry."""

    rows: ErasureStore
    receipts: ReceiptStore
    mirror: MirrorErasure
    cold: ColdStorage
    tenants: TenantStore


class Erase:
    """Erases an event, a conversation, a user or a tenant. All methods return the receipt.

    `forget_key` is told every API key that went with a tenant.
    """

    def __init__(
        self,
        adapters: ErasureAdapters,
        *,
        forget_key: Callable[[UUID], None] = lambda _: None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._rows, self._receipts = adapters.rows, adapters.receipts
        self._mirror, self._cold = adapters.mirror, adapters.cold
        self._tenants = adapters.tenants
        self._forget_key, self._now = forget_key, now

    async def event(self, tenant_id: UUID, event_id: UUID) -> Receipt:
        """Erase what an event said and what came of it. Raises ResourceNotFoundError."""
        conversation_id = await self._rows.conversation_of(tenant_id, event_id)
        if conversation_id is None:
            raise ResourceNotFoundError("event", str(event_id))
        copies = await self._rows.copies_in_forks(tenant_id, conversation_id, event_id)
        receipt = await self._begin(tenant_id, ErasureScope.EVENT, str(event_id), copies)
        await self._erase_event(tenant_id, receipt, conversation_id, event_id)
        erased = await self._mirror.erase_event(tenant_id, conversation_id, event_id)
        await self._add(tenant_id, receipt, erased)
        # A call that crashed may have left an object that still has the words.
        orphans = await self._cold.remove_orphans(tenant_id, conversation_id)
        await self._add(tenant_id, receipt, {"cold_objects": orphans})
        return await self._finish(tenant_id, receipt)

    async def conversation(self, tenant_id: UUID, conversation_id: UUID) -> Receipt:
        """Erase a conversation, deleted or not. Raises ResourceNotFoundError."""
        subject = str(conversation_id)
        if not await self._rows.exists(tenant_id, conversation_id) and not (
            await self._receipts.unfinished(tenant_id, ErasureScope.CONVERSATION, subject)
        ):
            raise ResourceNotFoundError("conversation", subject)
        copies = await self._rows.copies_in_forks(tenant_id, conversation_id)
        receipt = await self._begin(tenant_id, ErasureScope.CONVERSATION, subject, copies)
        await self._erase_conversation(tenant_id, receipt, conversation_id)
        return await self._finish(tenant_id, receipt)

    async def user(self, tenant_id: UUID, user_id: str) -> Receipt:
        """Erase the conversations of a user and what names the user elsewhere."""
        subject = user_subject(tenant_id, user_id)
        receipt = await self._begin(tenant_id, ErasureScope.USER, subject)
        while found := await self._rows.conversations_of_user(
            tenant_id, user_id, limit=BATCH_CONVERSATIONS
        ):
            await self._erase_conversations(tenant_id, receipt, found)
        await self._rows.erase_user(tenant_id, receipt.receipt_id, user_id)
        return await self._finish(tenant_id, receipt)

    async def tenant(self, tenant_id: UUID, confirm_display_name: str) -> Receipt:
        """Erase a tenant. Raises ResourceNotFoundError, and FieldInvalidError on another name."""
        await self._confirm(tenant_id, confirm_display_name)
        receipt = await self._begin(tenant_id, ErasureScope.TENANT, str(tenant_id))
        for api_key_id in await self._rows.lock_out(tenant_id, receipt.receipt_id):
            self._forget_key(api_key_id)
        is_gone = False
        while not is_gone:
            while found := await self._rows.conversations_of_tenant(
                tenant_id, limit=BATCH_CONVERSATIONS
            ):
                await self._erase_conversations(tenant_id, receipt, found)
            is_gone = await self._rows.erase_tenant(tenant_id, receipt.receipt_id)
        await self._add(tenant_id, receipt, await self._mirror.erase_tenant(tenant_id))
        objects = await self._cold.erase_tenant(tenant_id)
        await self._add(tenant_id, receipt, {"cold_objects": objects})
        return await self._finish(tenant_id, receipt)

    async def resume(self, tenant_id: UUID, receipt: Receipt) -> Receipt | None:
        """Finish an interrupted erasure whose receipt says all that is needed, else None."""
        match receipt.scope:
            case ErasureScope.EVENT:
                return await self.event(tenant_id, UUID(receipt.subject))
            case ErasureScope.CONVERSATION:
                return await self.conversation(tenant_id, UUID(receipt.subject))
            case _:
                return None

    async def _confirm(self, tenant_id: UUID, display_name: str) -> None:
        try:
            tenant = await self._tenants.get(tenant_id)
        except ResourceNotFoundError:
            if await self._receipts.unfinished(tenant_id, ErasureScope.TENANT, str(tenant_id)):
                return
            raise
        if tenant.display_name != display_name:
            raise FieldInvalidError(
                "confirm_display_name", "must be the display_name of the tenant", display_name
            )

    async def _erase_event(
        self, tenant_id: UUID, receipt: Receipt, conversation_id: UUID, event_id: UUID
    ) -> None:
        """Erase its rows. A segment it is in is written anew without it."""
        until_seq = 0
        while not await self._rows.erase_event(tenant_id, receipt.receipt_id, event_id):
            segments = await self._cold.bring_back(tenant_id, conversation_id, [event_id])
            await self._add(tenant_id, receipt, {"cold_objects": len(segments)})
            until_seq = max([until_seq, *(segment.last_seq for segment in segments)])
        if until_seq:
            await self._cold.move(tenant_id, conversation_id, until_seq=until_seq)

    async def _erase_conversations(
        self, tenant_id: UUID, receipt: Receipt, conversation_ids: list[UUID]
    ) -> None:
        for conversation_id in conversation_ids:
            await self._erase_conversation(tenant_id, receipt, conversation_id)

    async def _erase_conversation(
        self, tenant_id: UUID, receipt: Receipt, conversation_id: UUID
    ) -> None:
        await self._cold.check_reach(tenant_id, conversation_id)
        await self._rows.hide(tenant_id, conversation_id)
        while (
            await self._rows.erase_events(
                tenant_id, receipt.receipt_id, conversation_id, limit=BATCH_EVENTS
            )
            == BATCH_EVENTS
        ):
            pass
        await self._rows.erase_conversation(tenant_id, receipt.receipt_id, conversation_id)
        erased = await self._mirror.erase_conversation(tenant_id, conversation_id)
        await self._add(tenant_id, receipt, erased)
        objects = await self._cold.remove_orphans(tenant_id, conversation_id)
        await self._add(tenant_id, receipt, {"cold_objects": objects})

    async def _begin(
        self, tenant_id: UUID, scope: ErasureScope, subject: str, copies: int = 0
    ) -> Receipt:
        counts = {COPIES_IN_FORKS: copies}
        return await self._receipts.begin(
            tenant_id, Receipt(uuid7(), scope, subject, self._now(), counts)
        )

    async def _add(self, tenant_id: UUID, receipt: Receipt, counts: Counts) -> None:
        await self._receipts.add(tenant_id, receipt.receipt_id, counts)

    async def _finish(self, tenant_id: UUID, receipt: Receipt) -> Receipt:
        done = await self._receipts.finish(tenant_id, receipt.receipt_id, self._now())
        ERASURES.labels(done.scope.value).inc()
        log.info("erased", receipt_id=str(done.receipt_id), scope=done.scope.value)
        return done
