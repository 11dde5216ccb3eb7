"""Looks again for what a receipt says is gone."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_storage.commands.erasing import ErasureAdapters
from annals_storage.domain.erasure import (
    VERIFIED_KINDS,
    Counts,
    ErasureScope,
    Receipt,
    user_subject,
)
from annals_storage.ports.lifecycle import MirrorCount


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found again, by kind, zeros too."""

    remaining: Counts
    digest_matches: bool

    @property
    def verified(self) -> bool:
        """Whether nothing is left and the receipt is as it was completed."""
        return self.digest_matches and not any(self.remaining.values())


class VerifyErasure:
    """Counts anew in PostgreSQL, in the engine and in cold storage."""

    def __init__(self, adapters: ErasureAdapters, mirror: MirrorCount) -> None:
        self._rows, self._receipts = adapters.rows, adapters.receipts
        self._mirror, self._cold = mirror, adapters.cold

    async def __call__(self, tenant_id: UUID, receipt_id: UUID, user_id: str) -> Verification:
        """Raises ResourceNotFoundError, and FieldInvalidError for another user's id."""
        receipt = await self._receipts.get(tenant_id, receipt_id)
        if receipt is None:
            raise ResourceNotFoundError("erasure_receipt", str(receipt_id))
        found = await self._remaining(tenant_id, receipt, user_id)
        remaining = {kind: int(found.get(kind, 0)) for kind in VERIFIED_KINDS}
        return Verification(remaining, receipt.digest_matches)

    async def _remaining(self, tenant_id: UUID, receipt: Receipt, user_id: str) -> Counts:
        match receipt.scope:
            case ErasureScope.EVENT:
                return await self._of_event(tenant_id, UUID(receipt.subject))
            case ErasureScope.CONVERSATION:
                return await self._of_conversation(tenant_id, UUID(receipt.subject))
            case ErasureScope.USER:
                return await self._of_user(tenant_id, receipt, user_id)
            case ErasureScope.TENANT:
                return await self._of_tenant(tenant_id)

    async def _of_event(self, tenant_id: UUID, event_id: UUID) -> Counts:
        conversation_id = await self._rows.conversation_of(tenant_id, event_id)
        objects = 0
        if conversation_id is not None:
            objects = await self._cold.count_objects_with(tenant_id, conversation_id, event_id)
        return {
            **await self._rows.remaining_of_event(tenant_id, event_id),
            "vectors": await self._mirror.count_event(tenant_id, event_id),
            "cold_objects": objects,
        }

    async def _of_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        return {
            **await self._rows.remaining_of_conversation(tenant_id, conversation_id),
            "vectors": await self._mirror.count_conversation(tenant_id, conversation_id),
            "cold_objects": await self._cold.count_objects(tenant_id, conversation_id),
        }

    async def _of_user(self, tenant_id: UUID, receipt: Receipt, user_id: str) -> Counts:
        if user_subject(tenant_id, user_id) != receipt.subject:
            raise FieldInvalidError("user_id", "must be the user the receipt is about", user_id)
        return {
            **await self._rows.remaining_of_user(tenant_id, user_id),
            "vectors": await self._mirror.count_user(tenant_id, user_id),
        }

    async def _of_tenant(self, tenant_id: UUID) -> Counts:
        return {
            **await self._rows.remaining_of_tenant(tenant_id),
            "vectors": await self._mirror.count_tenant(tenant_id),
            "cold_objects": await self._cold.count_tenant_objects(tenant_id),
        }
