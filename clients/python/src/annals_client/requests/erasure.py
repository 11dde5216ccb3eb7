"""Erases for good and leaves receipts. Needs a key with TENANT_ADMIN.

An interrupted erasure is finished by the same call again, so all of it is safe to repeat.
"""

from __future__ import annotations

from annals.storage.v1 import erasure_service_pb2 as pb
from annals_client.calls import Call, Credential, Pages, safe_call, tenant_credential

ERASURE_TIMEOUT_S = 600.0


def event(event_id: str, *, timeout: float = ERASURE_TIMEOUT_S) -> Call[pb.ErasureReceipt]:
    """Erase an event: only its place stays."""
    request = pb.EraseEventRequest(event_id=event_id)
    call = safe_call(lambda stubs: stubs.erasure.EraseEvent, request, timeout)
    return call.map(lambda answer: answer.receipt)


def conversation(
    conversation_id: str, *, timeout: float = ERASURE_TIMEOUT_S
) -> Call[pb.ErasureReceipt]:
    """Erase a conversation with everything in it."""
    request = pb.EraseConversationRequest(conversation_id=conversation_id)
    call = safe_call(lambda stubs: stubs.erasure.EraseConversation, request, timeout)
    return call.map(lambda answer: answer.receipt)


def user(user_id: str, *, timeout: float = ERASURE_TIMEOUT_S) -> Call[pb.ErasureReceipt]:
    """Erase every conversation of a user and every trace of their id."""
    request = pb.EraseUserRequest(user_id=user_id)
    call = safe_call(lambda stubs: stubs.erasure.EraseUser, request, timeout)
    return call.map(lambda answer: answer.receipt)


def tenant(
    tenant_id: str, confirm_display_name: str, *, timeout: float = ERASURE_TIMEOUT_S
) -> Call[pb.ErasureReceipt]:
    """Erase a tenant; needs the admin key and the tenant's display name."""
    request = pb.EraseTenantRequest(tenant_id=tenant_id, confirm_display_name=confirm_display_name)
    call = safe_call(lambda stubs: stubs.erasure.EraseTenant, request, timeout)
    return call.map(lambda answer: answer.receipt).by(Credential.ADMIN_KEY)


def receipt(
    receipt_id: str, *, tenant_id: str = "", timeout: float | None = None
) -> Call[pb.ErasureReceipt]:
    """Read one receipt. With `tenant_id` the admin key is used."""
    request = pb.GetErasureReceiptRequest(tenant_id=tenant_id, receipt_id=receipt_id)
    call = safe_call(lambda stubs: stubs.erasure.GetErasureReceipt, request, timeout)
    return call.map(lambda answer: answer.receipt).by(tenant_credential(tenant_id))


def receipts(
    *,
    tenant_id: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.ErasureReceipt]:
    """Receipts, newest first. With `tenant_id` the admin key is used."""
    request = pb.ListErasureReceiptsRequest(tenant_id=tenant_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.erasure.ListErasureReceipts, request, timeout)
    return Pages(call.by(tenant_credential(tenant_id)), lambda answer: answer.receipts, limit)


def verify(
    receipt_id: str,
    *,
    tenant_id: str = "",
    user_id: str = "",
    timeout: float = ERASURE_TIMEOUT_S,
) -> Call[pb.VerifyErasureResponse]:
    """Look again for what a receipt says is gone. `user_id`: for the receipt of a user."""
    request = pb.VerifyErasureRequest(tenant_id=tenant_id, receipt_id=receipt_id, user_id=user_id)
    call = safe_call(lambda stubs: stubs.erasure.VerifyErasure, request, timeout)
    return call.by(tenant_credential(tenant_id))
