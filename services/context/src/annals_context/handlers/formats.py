"""FormatService."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from annals.context.v1 import format_service_pb2 as pb
from annals.context.v1 import format_service_pb2_grpc as pb_grpc
from annals.storage.v1 import resources_pb2
from annals_common.errors import FieldInvalidError, LimitExceededError
from annals_common.settings import MAX_REQUEST_BYTES
from annals_common.validation import check_response_size, enum, long_text, text
from annals_context.domain.counting import Counter
from annals_context.domain.events import Event
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.providers import PARSERS, RENDERERS
from annals_context.domain.model import CounterInfo
from annals_context.handlers.access import refuse_publishable
from annals_context.handlers.context import MAX_MODEL_CHARS
from annals_context.handlers.enums import FORMATS
from annals_context.handlers.output import counter_message, repair_message
from annals_context.translation import ROLES, event_from, new_event_message

MAX_EVENTS = 10_000
MAX_TEXTS = 1_000


class FormatHandler(pb_grpc.FormatServiceServicer):
    """Translates; the formats are in domain.formats. Long work runs in a thread."""

    def __init__(self, counter_for: Callable[[str], Counter]) -> None:
        self._counter_for = counter_for

    async def Render(self, request: pb.RenderRequest, context: Any) -> pb.RenderResponse:
        refuse_publishable("Render")
        events = _events(request)
        render = RENDERERS[enum(request.format, FORMATS, "format")]
        counter = self._counter_for(text(request.model, "model", max_chars=MAX_MODEL_CHARS))
        rendered = await asyncio.to_thread(render, events)
        response = pb.RenderResponse(
            payload=rendered.payload,
            total_tokens=await asyncio.to_thread(counter.count, rendered.payload),
            counter=_info(counter),
            repairs=[repair_message(repair) for repair in rendered.repairs],
        )
        check_response_size(response, "events")
        return response

    async def Parse(self, request: pb.ParseRequest, context: Any) -> pb.ParseResponse:
        refuse_publishable("Parse")
        parse = PARSERS.get(enum(request.format, FORMATS, "format"))
        if parse is None:
            raise FieldInvalidError("format", "nothing is read from TEXT", request.format)
        payload = long_text(request.payload, "payload", max_bytes=MAX_REQUEST_BYTES)
        if not payload:
            raise FieldInvalidError("payload", "is required: JSON in the format")
        return await asyncio.to_thread(lambda: _parse_response(parse(payload)))

    async def CountTokens(
        self, request: pb.CountTokensRequest, context: Any
    ) -> pb.CountTokensResponse:
        refuse_publishable("CountTokens")
        _check_texts(request)
        counter = self._counter_for(text(request.model, "model", max_chars=MAX_MODEL_CHARS))
        counts = await asyncio.to_thread(lambda: [counter.count(item) for item in request.texts])
        return pb.CountTokensResponse(
            token_counts=counts, total_tokens=sum(counts), counter=_info(counter)
        )


def _parse_response(parsed: Parsed) -> pb.ParseResponse:
    if (actual := len(parsed.events)) > MAX_EVENTS:
        raise LimitExceededError("payload", limit=MAX_EVENTS, actual=actual, unit="events")
    response = pb.ParseResponse(
        events=[new_event_message(event) for event in parsed.events],
        repairs=[repair_message(repair) for repair in parsed.repairs],
    )
    check_response_size(response, "payload")
    return response


def _events(request: pb.RenderRequest) -> list[Event]:
    if not request.events:
        raise FieldInvalidError("events", f"is required: 1–{MAX_EVENTS:,} events")
    if len(request.events) > MAX_EVENTS:
        actual = len(request.events)
        raise LimitExceededError("events", limit=MAX_EVENTS, actual=actual, unit="items")
    for i, event in enumerate(request.events):
        _check_event(event, f"events[{i}]")
    return [event_from(event) for event in request.events]


def _check_event(event: resources_pb2.Event, path: str) -> None:
    kind = event.WhichOneof("body")
    if kind is None:
        raise FieldInvalidError(f"{path}.body", "is required: one member of the oneof")
    if kind == "message":
        enum(event.message.role, ROLES, f"{path}.message.role")


def _check_texts(request: pb.CountTokensRequest) -> None:
    if not request.texts:
        raise FieldInvalidError("texts", f"is required: 1–{MAX_TEXTS:,} texts")
    if len(request.texts) > MAX_TEXTS:
        actual = len(request.texts)
        raise LimitExceededError("texts", limit=MAX_TEXTS, actual=actual, unit="items")
    if (size := request.ByteSize()) > MAX_REQUEST_BYTES:
        raise LimitExceededError("texts", limit=MAX_REQUEST_BYTES, actual=size, unit="bytes")


def _info(counter: Counter) -> Any:
    return counter_message(CounterInfo(counter.encoding, counter.exact, 0))
