"""EventService: events by their presentation chunks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_common.validation import bounded, check_response_size, require_uuid
from annals_storage.domain.events import Event
from annals_storage.domain.presentation import PresentationChunk, presentation_chunks
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.output import event_message
from annals_storage.ports.embedding import Tokenizer
from annals_storage.ports.events import EventStore

MIN_CHUNK_TOKENS, MAX_CHUNK_TOKENS, DEFAULT_CHUNK_TOKENS = 100, 100_000, 4_000
DEFAULT_OVERLAP_TOKENS = 200
DEFAULT_CHUNK_TO_OVERLAP = 20
MAX_CHUNKS = 1_000
MAX_CHUNK_INDEX = 2**31 - 1
LONG_TEXT_CHARS = 16 * 1024
"""Cutting more than this would hold up other calls: a thread does it."""


class EventChunksHandler:
    """Translates; the cutting is in domain.presentation."""

    def __init__(self, events: EventStore, tokenizer: Tokenizer) -> None:
        self._events, self._tokenizer = events, tokenizer

    async def GetEventChunks(
        self, request: pb.GetEventChunksRequest, context: Any
    ) -> pb.GetEventChunksResponse:
        tenant_id = data_tenant("GetEventChunks")
        event_id = require_uuid(request.event_id, "event_id")
        sizes = _sizes(request)
        wanted = _wanted(request)
        found = (await self._events.get(tenant_id, [event_id])).get(event_id)
        if found is None:
            raise ResourceNotFoundError("event", str(event_id))
        text = found.body.words()
        chunks = await self._cut(text, *sizes)
        response = pb.GetEventChunksResponse(
            event=event_message(_without_text(found)),
            chunks=_messages(text, chunks, wanted),
            chunk_count=len(chunks),
        )
        check_response_size(response, "limit")
        return response

    async def _cut(
        self, text: str, chunk_tokens: int, overlap_tokens: int
    ) -> list[PresentationChunk]:
        if len(text) > LONG_TEXT_CHARS:
            return await asyncio.to_thread(self._chunks, text, chunk_tokens, overlap_tokens)
        return self._chunks(text, chunk_tokens, overlap_tokens)

    def _chunks(self, text: str, chunk_tokens: int, overlap_tokens: int) -> list[PresentationChunk]:
        return presentation_chunks(
            text,
            self._tokenizer.token_starts(text),
            lambda part: self._tokenizer.count([part])[0],
            chunk_tokens=chunk_tokens,
            overlap_tokens=overlap_tokens,
        )


def _sizes(request: pb.GetEventChunksRequest) -> tuple[int, int]:
    """Return (chunk_tokens, overlap_tokens)."""
    chunk_tokens = request.chunk_tokens or DEFAULT_CHUNK_TOKENS
    bounded(chunk_tokens, "chunk_tokens", low=MIN_CHUNK_TOKENS, high=MAX_CHUNK_TOKENS)
    if not request.HasField("overlap_tokens"):
        return chunk_tokens, min(DEFAULT_OVERLAP_TOKENS, chunk_tokens // DEFAULT_CHUNK_TO_OVERLAP)
    if not 0 <= 2 * request.overlap_tokens < chunk_tokens:
        raise FieldInvalidError(
            "overlap_tokens",
            f"must be at least 0 and less than half of chunk_tokens, {chunk_tokens:,}",
            request.overlap_tokens,
        )
    return chunk_tokens, request.overlap_tokens


def _wanted(request: pb.GetEventChunksRequest) -> range:
    bounded(request.chunk_index, "chunk_index", low=0, high=MAX_CHUNK_INDEX)
    bounded(request.limit, "limit", low=0, high=MAX_CHUNKS)
    return range(request.chunk_index, request.chunk_index + (request.limit or MAX_CHUNK_INDEX))


def _without_text(event: Event) -> Event:
    body = replace(event.body, content=None, tool_input=None, tool_result=None, error_message=None)
    return replace(event, body=body)


def _messages(text: str, chunks: Sequence[PresentationChunk], wanted: range) -> list[pb.EventChunk]:
    return [
        pb.EventChunk(
            chunk_index=index,
            start_char=chunk.start,
            end_char=chunk.end,
            token_count=chunk.token_count,
            text=text[chunk.start : chunk.end],
        )
        for index, chunk in enumerate(chunks[wanted.start : wanted.stop], start=wanted.start)
    ]
