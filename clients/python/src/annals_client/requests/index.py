"""The mirror of embeddings."""

from __future__ import annotations

from annals.storage.v1 import index_service_pb2 as pb
from annals_client.calls import Call, safe_call


def status(
    *, conversation_id: str = "", timeout: float | None = None
) -> Call[pb.GetIndexStatusResponse]:
    """What the mirror holds and lacks, for the tenant or for one conversation's backlog."""
    request = pb.GetIndexStatusRequest(conversation_id=conversation_id)
    return safe_call(lambda stubs: stubs.index.GetIndexStatus, request, timeout)
