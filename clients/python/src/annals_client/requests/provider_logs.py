"""Raw requests to model providers and their responses, for debugging."""

from __future__ import annotations

from annals.storage.v1 import provider_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call
from annals_client.values import json_text


def create(
    conversation_id: str,
    provider: str,
    *,
    request: object,
    response: object = "",
    model: str = "",
    latency_ms: int = 0,
    timeout: float | None = None,
) -> Call[pb.ProviderLog]:
    """Store a call of a provider. `request`, `response`: JSON texts, or values to write as JSON.

    The agent of the conversation must enable it. Not repeated by itself.
    """
    log = pb.ProviderLog(
        conversation_id=conversation_id,
        provider=provider,
        model=model,
        request_json=json_text(request),
        response_json=json_text(response),
        latency_ms=latency_ms,
    )
    message = pb.CreateProviderLogRequest(provider_log=log)
    call = single_call(lambda stubs: stubs.providers.CreateProviderLog, message, timeout)
    return call.map(lambda answer: answer.provider_log)


def list_all(
    conversation_id: str,
    *,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.ProviderLog]:
    """Logs of a conversation, newest first."""
    request = pb.ListProviderLogsRequest(conversation_id=conversation_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.providers.ListProviderLogs, request, timeout)
    return Pages(call, lambda answer: answer.provider_logs, limit)
