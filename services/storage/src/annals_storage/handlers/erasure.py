"""ErasureService."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import erasure_service_pb2 as pb
from annals.storage.v1 import erasure_service_pb2_grpc as pb_grpc
from annals_common.errors import ResourceNotFoundError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import page_size, require_text, require_uuid, text
from annals_storage.commands.erasing import Erase
from annals_storage.commands.verifying_erasure import VerifyErasure
from annals_storage.domain.erasure import Counts, ErasureScope, Receipt
from annals_storage.handlers.access import (
    administered_tenant,
    own_administered_tenant,
    require_installation_admin,
)
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.lifecycle import ReceiptStore

MAX_USER_ID_CHARS = 256
MAX_NAME_CHARS = 200
SCOPE_NUMBERS: dict[ErasureScope, Any] = {
    ErasureScope.EVENT: pb.ERASURE_SCOPE_EVENT,
    ErasureScope.CONVERSATION: pb.ERASURE_SCOPE_CONVERSATION,
    ErasureScope.USER: pb.ERASURE_SCOPE_USER,
    ErasureScope.TENANT: pb.ERASURE_SCOPE_TENANT,
}


class ErasureHandler(pb_grpc.ErasureServiceServicer):
    """Translates; the use cases are in commands.erasing and commands.verifying_erasure."""

    def __init__(self, erase: Erase, verify: VerifyErasure, receipts: ReceiptStore) -> None:
        self._erase, self._verify, self._receipts = erase, verify, receipts

    async def EraseEvent(
        self, request: pb.EraseEventRequest, context: Any
    ) -> pb.EraseEventResponse:
        tenant_id = own_administered_tenant("EraseEvent")
        event_id = require_uuid(request.event_id, "event_id")
        receipt = await self._erase.event(tenant_id, event_id)
        return pb.EraseEventResponse(receipt=receipt_message(receipt))

    async def EraseConversation(
        self, request: pb.EraseConversationRequest, context: Any
    ) -> pb.EraseConversationResponse:
        tenant_id = own_administered_tenant("EraseConversation")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        receipt = await self._erase.conversation(tenant_id, conversation_id)
        return pb.EraseConversationResponse(receipt=receipt_message(receipt))

    async def EraseUser(self, request: pb.EraseUserRequest, context: Any) -> pb.EraseUserResponse:
        tenant_id = own_administered_tenant("EraseUser")
        user_id = require_text(request.user_id, "user_id", max_chars=MAX_USER_ID_CHARS)
        receipt = await self._erase.user(tenant_id, user_id)
        return pb.EraseUserResponse(receipt=receipt_message(receipt))

    async def EraseTenant(
        self, request: pb.EraseTenantRequest, context: Any
    ) -> pb.EraseTenantResponse:
        require_installation_admin("EraseTenant")
        tenant_id = require_uuid(request.tenant_id, "tenant_id")
        name = require_text(
            request.confirm_display_name, "confirm_display_name", max_chars=MAX_NAME_CHARS
        )
        receipt = await self._erase.tenant(tenant_id, name)
        return pb.EraseTenantResponse(receipt=receipt_message(receipt))

    async def GetErasureReceipt(
        self, request: pb.GetErasureReceiptRequest, context: Any
    ) -> pb.GetErasureReceiptResponse:
        tenant_id = administered_tenant("GetErasureReceipt", request.tenant_id)
        receipt = await self._get(tenant_id, require_uuid(request.receipt_id, "receipt_id"))
        return pb.GetErasureReceiptResponse(receipt=receipt_message(receipt))

    async def ListErasureReceipts(
        self, request: pb.ListErasureReceiptsRequest, context: Any
    ) -> pb.ListErasureReceiptsResponse:
        tenant_id = administered_tenant("ListErasureReceipts", request.tenant_id)
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._receipts.page(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListErasureReceiptsResponse(receipts=[receipt_message(one) for one in page])
        if has_more:
            last = encode_time_cursor(page[-1].started_at, page[-1].receipt_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def VerifyErasure(
        self, request: pb.VerifyErasureRequest, context: Any
    ) -> pb.VerifyErasureResponse:
        tenant_id = administered_tenant("VerifyErasure", request.tenant_id)
        receipt_id = require_uuid(request.receipt_id, "receipt_id")
        user_id = text(request.user_id, "user_id", max_chars=MAX_USER_ID_CHARS)
        found = await self._verify(tenant_id, receipt_id, user_id)
        return pb.VerifyErasureResponse(
            verified=found.verified,
            remaining=_counts(found.remaining),
            digest_matches=found.digest_matches,
        )

    async def _get(self, tenant_id: UUID, receipt_id: UUID) -> Receipt:
        receipt = await self._receipts.get(tenant_id, receipt_id)
        if receipt is None:
            raise ResourceNotFoundError("erasure_receipt", str(receipt_id))
        return receipt


def receipt_message(receipt: Receipt) -> pb.ErasureReceipt:
    """Return the receipt as the API shows it."""
    return pb.ErasureReceipt(
        receipt_id=str(receipt.receipt_id),
        scope=SCOPE_NUMBERS[receipt.scope],
        subject=receipt.subject,
        counts=_counts(receipt.full_counts()),
        start_time=timestamp_message(receipt.started_at),
        complete_time=timestamp_message(receipt.completed_at),
        digest=receipt.digest,
    )


def _counts(counts: Counts) -> list[pb.ErasedCount]:
    return [pb.ErasedCount(kind=kind, count=count) for kind, count in sorted(counts.items())]
