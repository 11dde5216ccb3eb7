"""Segments of cold storage: the words of events as compressed JSON Lines."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

MAX_SEGMENT_EVENTS = 5_000
MAX_SEGMENT_BYTES = 32 * 1024 * 1024
"""Of text before compression; a single longer event is a segment of its own."""
WORD_FIELDS = ("content", "tool_input", "tool_result", "error_message", "metadata")


class SegmentDamagedError(Exception):
    """An object is not what was stored under its name."""


@dataclass(frozen=True, slots=True)
class ColdWords:
    """The words of one event. `metadata` is JSON as PostgreSQL wrote it."""

    event_id: UUID
    content: str | None = None
    tool_input: str | None = None
    tool_result: str | None = None
    error_message: str | None = None
    metadata: str | None = None

    def metadata_dict(self) -> dict[str, Any]:
        """Return the metadata, empty when there is none."""
        return dict(json.loads(self.metadata)) if self.metadata else {}

    def size_chars(self) -> int:
        """Return roughly how much memory the words take."""
        return 200 + sum(len(getattr(self, name) or "") for name in WORD_FIELDS)


@dataclass(frozen=True, slots=True)
class StoredWords:
    """Words as read from PostgreSQL, with what tells whether the event changed since."""

    words: ColdWords
    seq: int
    version: int


@dataclass(frozen=True, slots=True)
class Segment:
    """An object of cold storage. `path` is relative to the storage's root."""

    segment_id: UUID
    conversation_id: UUID
    first_seq: int
    last_seq: int
    event_count: int
    path: str
    sha256: bytes
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Moved:
    """What a call moved to cold storage. `stored_bytes` are compressed."""

    event_count: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(self.event_count + other.event_count, self.stored_bytes + other.stored_bytes)


def folder_of(tenant_id: UUID, conversation_id: UUID) -> str:
    """Return where the segments of a conversation are."""
    return f"{tenant_id}/{conversation_id}"


def path_of(tenant_id: UUID, conversation_id: UUID, segment_id: UUID) -> str:
    """Return the path of a segment."""
    return f"{folder_of(tenant_id, conversation_id)}/{segment_id}.jsonl.gz"


def encode(words: Iterable[ColdWords]) -> bytes:
    """Return the compressed JSON Lines, the same for the same words."""
    lines = (json.dumps(_line(item), ensure_ascii=False) for item in words)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def decode(data: bytes, sha256: bytes) -> list[ColdWords]:
    """Undo `encode`. Raises SegmentDamagedError unless the bytes have this digest."""
    if hashlib.sha256(data).digest() != sha256:
        raise SegmentDamagedError("the object has another digest than what was stored")
    lines = gzip.decompress(data).decode().split("\n")
    return [_words(json.loads(line)) for line in lines if line]


def new_segment(
    tenant_id: UUID,
    conversation_id: UUID,
    segment_id: UUID,
    stored: Sequence[StoredWords],
    data: bytes,
) -> Segment:
    """Describe encoded words that are in order of seq."""
    return Segment(
        segment_id=segment_id,
        conversation_id=conversation_id,
        first_seq=stored[0].seq,
        last_seq=stored[-1].seq,
        event_count=len(stored),
        path=path_of(tenant_id, conversation_id, segment_id),
        sha256=hashlib.sha256(data).digest(),
        stored_bytes=len(data),
    )


def _line(words: ColdWords) -> dict[str, str]:
    values = {name: getattr(words, name) for name in WORD_FIELDS}
    present = {name: value for name, value in values.items() if value is not None}
    return {"event_id": str(words.event_id), **present}


def _words(line: dict[str, str]) -> ColdWords:
    return ColdWords(**{**line, "event_id": UUID(line["event_id"])})  # type: ignore[arg-type]
