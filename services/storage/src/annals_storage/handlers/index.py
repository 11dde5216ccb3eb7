"""IndexService."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import index_service_pb2 as pb
from annals.storage.v1 import index_service_pb2_grpc as pb_grpc
from annals_common.validation import optional_uuid
from annals_storage.handlers.access import data_tenant
from annals_storage.ports.embedding import Embedder
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.vectors import VectorIndex


class IndexHandler(pb_grpc.IndexServiceServicer):
    """Tells how far the mirror is."""

    def __init__(self, *, outbox: Outbox, vectors: VectorIndex, embedder: Embedder) -> None:
        self._outbox, self._vectors, self._embedder = outbox, vectors, embedder

    async def GetIndexStatus(
        self, request: pb.GetIndexStatusRequest, context: Any
    ) -> pb.GetIndexStatusResponse:
        tenant_id = data_tenant("GetIndexStatus")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        conversations = [conversation_id] if conversation_id else []
        backlog = await self._outbox.backlog(tenant_id, conversation_ids=conversations)
        return pb.GetIndexStatusResponse(
            pending_count=backlog.pending,
            parked_count=backlog.parked,
            index_lag_ms=backlog.lag_ms,
            chunk_count=await self._outbox.count_chunks(tenant_id),
            point_count=await self._vectors.count_points(tenant_id),
            embedding_model=self._embedder.model,
            embedding_dimensions=self._embedder.dimensions,
        )
