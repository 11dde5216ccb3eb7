"""IndexService."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import index_service_pb2 as pb
from annals.storage.v1 import index_service_pb2_grpc as pb_grpc
from annals_common.validation import optional_uuid
from annals_storage.commands.generations import Generations
from annals_storage.handlers.access import data_tenant
from annals_storage.ports.outbox import Outbox


class IndexHandler(pb_grpc.IndexServiceServicer):
    """Tells how far the mirror is."""

    def __init__(self, *, outbox: Outbox, generations: Generations) -> None:
        self._outbox, self._generations = outbox, generations

    async def GetIndexStatus(
        self, request: pb.GetIndexStatusRequest, context: Any
    ) -> pb.GetIndexStatusResponse:
        tenant_id = data_tenant("GetIndexStatus")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        conversations = [conversation_id] if conversation_id else []
        backlog = await self._outbox.backlog(tenant_id, conversation_ids=conversations)
        serving, building = self._generations.serving, self._generations.building
        model = serving.generation.model
        return pb.GetIndexStatusResponse(
            pending_count=backlog.pending,
            parked_count=backlog.parked,
            index_lag_ms=backlog.lag_ms,
            chunk_count=await self._outbox.count_chunks(tenant_id, model.name),
            point_count=await serving.vectors.count_points(tenant_id),
            embedding_model=model.name,
            embedding_dimensions=model.dimensions,
            serving_generation=serving.generation.number,
            building_generation=building.number if building else 0,
            build_progress=building.progress if building else 0.0,
        )
