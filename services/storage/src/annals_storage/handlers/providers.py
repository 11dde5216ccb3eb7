"""ProviderService."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import provider_service_pb2 as pb
from annals.storage.v1 import provider_service_pb2_grpc as pb_grpc
from annals_common.ids import uuid7
from annals_common.paging import (
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import bounded, json_text, require_text, require_uuid, text
from annals_storage.domain.provider_logs import NewProviderLog, ProviderLog
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.provider_logs import ProviderLogStore

MAX_PROVIDER_CHARS = 100
MAX_MODEL_CHARS = 200
MAX_JSON_BYTES = 256 * 1024
MAX_LATENCY_MS = 2**62
MAX_PAGE_SIZE = 100
DEFAULT_PAGE_SIZE = 20


class ProviderHandler(pb_grpc.ProviderServiceServicer):
    """Translates; the store decides by the conversation's agent."""

    def __init__(self, logs: ProviderLogStore) -> None:
        self._logs = logs

    async def CreateProviderLog(
        self, request: pb.CreateProviderLogRequest, context: Any
    ) -> pb.CreateProviderLogResponse:
        tenant_id = data_tenant("CreateProviderLog")
        created = await self._logs.create(tenant_id, _new_log(request.provider_log))
        message = _message(created)
        message.ClearField("request_json")
        message.ClearField("response_json")
        return pb.CreateProviderLogResponse(provider_log=message)

    async def ListProviderLogs(
        self, request: pb.ListProviderLogsRequest, context: Any
    ) -> pb.ListProviderLogsResponse:
        tenant_id = data_tenant("ListProviderLogs")
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        bounded(request.page_size, "page_size", low=0, high=MAX_PAGE_SIZE)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        page = await self._logs.page(
            tenant_id, conversation_id, cursor=cursor, limit=request.page_size or DEFAULT_PAGE_SIZE
        )
        response = pb.ListProviderLogsResponse(provider_logs=[_message(log) for log in page.logs])
        if page.has_more:
            last = encode_time_cursor(page.logs[-1].created_at, page.logs[-1].provider_log_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response


def _new_log(log: pb.ProviderLog) -> NewProviderLog:
    path = "provider_log"
    bounded(log.latency_ms, f"{path}.latency_ms", low=0, high=MAX_LATENCY_MS)
    return NewProviderLog(
        provider_log_id=uuid7(),
        conversation_id=require_uuid(log.conversation_id, f"{path}.conversation_id"),
        provider=require_text(log.provider, f"{path}.provider", max_chars=MAX_PROVIDER_CHARS),
        model=text(log.model, f"{path}.model", max_chars=MAX_MODEL_CHARS),
        request_json=json_text(log.request_json, f"{path}.request_json", max_bytes=MAX_JSON_BYTES),
        response_json=_response_json(log.response_json, f"{path}.response_json"),
        latency_ms=log.latency_ms,
    )


def _response_json(value: str, field: str) -> str:
    """A call that failed has no response."""
    return json_text(value, field, max_bytes=MAX_JSON_BYTES) if value else ""


def _message(log: ProviderLog) -> pb.ProviderLog:
    return pb.ProviderLog(
        provider_log_id=str(log.provider_log_id),
        conversation_id=str(log.conversation_id),
        provider=log.provider,
        model=log.model,
        request_json=log.request_json,
        response_json=log.response_json,
        latency_ms=log.latency_ms,
        create_time=timestamp_message(log.created_at),
        expire_time=timestamp_message(log.expires_at),
    )
