"""Canonical events to providers' formats and back; counting tokens."""

from __future__ import annotations

from collections.abc import Sequence

from annals.context.v1 import format_service_pb2 as pb
from annals.context.v1 import resources_pb2 as res
from annals.storage.v1 import resources_pb2 as storage_res
from annals_client.calls import Call, safe_call
from annals_client.values import enum_number

_PREFIX = "PAYLOAD_FORMAT_"


def render(
    events: Sequence[storage_res.Event],
    *,
    payload_format: int | str = "openai-chat",
    model: str = "",
    timeout: float | None = None,
) -> Call[pb.RenderResponse]:
    """Write 1–10,000 events in a provider's format.

    `payload_format`: openai-chat, openai-responses, anthropic-messages, gemini-contents or text.
    """
    number = enum_number(res.PayloadFormat, _PREFIX, payload_format)
    request = pb.RenderRequest(events=events, format=number, model=model)
    return safe_call(lambda stubs: stubs.formats.Render, request, timeout)


def parse(
    payload: str, *, payload_format: int | str = "openai-chat", timeout: float | None = None
) -> Call[pb.ParseResponse]:
    """Read a provider's payload into events that are ready to append.

    `payload_format`: as for render, but text.
    """
    number = enum_number(res.PayloadFormat, _PREFIX, payload_format)
    request = pb.ParseRequest(payload=payload, format=number)
    return safe_call(lambda stubs: stubs.formats.Parse, request, timeout)


def count_tokens(
    texts: str | Sequence[str], *, model: str = "", timeout: float | None = None
) -> Call[pb.CountTokensResponse]:
    """Count tokens of 1–1,000 texts in a model's tokenizer."""
    several = [texts] if isinstance(texts, str) else texts
    request = pb.CountTokensRequest(texts=several, model=model)
    return safe_call(lambda stubs: stubs.formats.CountTokens, request, timeout)
