"""Embeddings of a batch: each text once, and not at all when it was embedded before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from annals_storage.domain.search import DenseVector
from annals_storage.indexer.metrics import EMBED_SECONDS, EMBEDDED_CHUNKS
from annals_storage.ports.embedding import Embedder

FLOAT16 = np.dtype("<f2")
HASH_BYTES = 16


def content_hash(text: str) -> bytes:
    """Return what tells a text from others of its tenant."""
    return hashlib.sha256(text.encode()).digest()[:HASH_BYTES]


def to_bytes(vector: DenseVector) -> bytes:
    """Return a vector as PostgreSQL keeps it."""
    return vector.astype(FLOAT16).tobytes()


def from_bytes(stored: bytes) -> DenseVector:
    """Undo to_bytes."""
    return np.frombuffer(stored, FLOAT16).astype(np.float32)


async def vectors_by_hash(
    texts: Mapping[bytes, str], stored: Mapping[bytes, bytes], embedder: Embedder
) -> dict[bytes, DenseVector]:
    """Return the vector of every text, by its hash. Only what is not stored reaches the model."""
    vectors = {key: from_bytes(stored[key]) for key in texts if key in stored}
    fresh = [key for key in texts if key not in vectors]
    if fresh:
        with EMBED_SECONDS.time():
            embedded = await embedder.embed([texts[key] for key in fresh])
        EMBEDDED_CHUNKS.inc(len(fresh))
        vectors |= dict(zip(fresh, embedded, strict=True))
    return vectors
