"""What the mirror should hold, what it holds, and how the two can differ."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from annals_storage.domain.search import ChunkPoint, MemoryPoint

DIGEST_BYTES = 8


class Drift(StrEnum):
    """How a point of the mirror can differ from PostgreSQL.

    `missing`: a row without its point · `extra`: a point of a tenant without a row of that tenant ·
    `foreign`: a point of no tenant there is · `stale`: made of other words, or by another model,
    than the row's · `wrong_payload`: anything else it carries is not what would be written now.
    """

    MISSING = "missing"
    EXTRA = "extra"
    FOREIGN = "foreign"
    STALE = "stale"
    WRONG_PAYLOAD = "wrong_payload"


@dataclass(frozen=True, slots=True)
class MirroredRow:
    """A chunk or memory that belongs into the mirror.

    `source_id`: the event or memory to index for it. `expected`: its point as the indexer would
    write it now, without vectors.
    """

    source_id: UUID
    expected: ChunkPoint | MemoryPoint

    @property
    def keys(self) -> tuple[UUID, ...]:
        """Keys in the outbox that a change of the row waits under."""
        return self.source_id, self.expected.conversation_id


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as the engine holds it, without vectors.

    `tenant`: as it stands there, None without one. `keys`: what the outbox may know it by, by its
    own word: itself, its event, its conversation. `payload`: in the engine's terms.
    """

    point_id: UUID
    tenant: str | None
    keys: tuple[UUID, ...]
    payload: Mapping[str, Any]


def made_of(content: bytes, embedding_model: str) -> str:
    """Return the digest of what the vectors of a point were made of.

    `content`: the hash of a chunk's words; of a memory, whose embedding may be its caller's, that.
    """
    return hashlib.sha256(content + embedding_model.encode()).digest()[:DIGEST_BYTES].hex()
