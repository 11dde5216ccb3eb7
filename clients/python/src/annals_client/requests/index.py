"""The mirror of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from annals.storage.v1 import index_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call


def status(
    *, conversation_id: str = "", timeout: float | None = None
) -> Call[pb.GetIndexStatusResponse]:
    """What the mirror holds and lacks, for the tenant or for one conversation's backlog."""
    request = pb.GetIndexStatusRequest(conversation_id=conversation_id)
    return safe_call(lambda stubs: stubs.index.GetIndexStatus, request, timeout)


def parked(
    *, page_size: int = 0, limit: int | None = None, timeout: float | None = None
) -> Pages[pb.ParkedEntry]:
    """Changes that could not be mirrored, newest first. Needs a key with TENANT_ADMIN."""
    request = pb.ListParkedEntriesRequest(page_size=page_size)
    call = safe_call(lambda stubs: stubs.index.ListParkedEntries, request, timeout)
    return Pages(call, lambda answer: answer.entries, limit)


def retry(entry_ids: Sequence[str] = (), *, timeout: float | None = None) -> Call[int]:
    """Have parked changes tried again, or all of them; return how many were parked.

    Safe to repeat. Needs a key with TENANT_ADMIN.
    """
    request = pb.RetryParkedEntriesRequest(entry_ids=entry_ids)
    call = safe_call(lambda stubs: stubs.index.RetryParkedEntries, request, timeout)
    return call.map(lambda answer: answer.retried_count)
