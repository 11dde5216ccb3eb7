"""IndexService."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import index_service_pb2 as pb
from annals.storage.v1 import index_service_pb2_grpc as pb_grpc
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import optional_uuid, page_size, uuids
from annals_storage.commands.generations import Generations
from annals_storage.domain.indexing import OutboxKind, ParkedEntry
from annals_storage.handlers.access import data_tenant, own_administered_tenant
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.parked import ParkedEntries

MAX_RETRIED = 1_000
KINDS = {
    OutboxKind.EVENT: pb.PARKED_ENTRY_KIND_EVENT,
    OutboxKind.MEMORY: pb.PARKED_ENTRY_KIND_MEMORY,
    OutboxKind.CONVERSATION: pb.PARKED_ENTRY_KIND_CONVERSATION,
}


class IndexHandler(pb_grpc.IndexServiceServicer):
    """Tells how far the mirror is, and what was given up."""

    def __init__(self, *, outbox: Outbox, generations: Generations, parked: ParkedEntries) -> None:
        self._outbox, self._generations, self._parked = outbox, generations, parked

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

    async def ListParkedEntries(
        self, request: pb.ListParkedEntriesRequest, context: Any
    ) -> pb.ListParkedEntriesResponse:
        tenant_id = own_administered_tenant("ListParkedEntries")
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._parked.page(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListParkedEntriesResponse(entries=[_parked_message(it) for it in page])
        if has_more:
            last = encode_time_cursor(page[-1].parked_at, page[-1].key)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def RetryParkedEntries(
        self, request: pb.RetryParkedEntriesRequest, context: Any
    ) -> pb.RetryParkedEntriesResponse:
        tenant_id = own_administered_tenant("RetryParkedEntries")
        keys = uuids(request.entry_ids, "entry_ids", max_items=MAX_RETRIED)
        return pb.RetryParkedEntriesResponse(
            retried_count=await self._parked.retry(tenant_id, keys)
        )


def _parked_message(entry: ParkedEntry) -> pb.ParkedEntry:
    return pb.ParkedEntry(
        kind=KINDS[entry.kind],
        entry_id=str(entry.key),
        conversation_id=str(entry.conversation_id),
        attempts=entry.attempts,
        error=entry.error,
        park_time=timestamp_message(entry.parked_at),
    )
