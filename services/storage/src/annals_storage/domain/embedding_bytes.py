"""Embeddings as PostgreSQL keeps them: float16, little endian."""

from __future__ import annotations

import numpy as np

from annals_storage.domain.search import DenseVector

FLOAT16 = np.dtype("<f2")


def to_bytes(vector: DenseVector) -> bytes:
    """Return a vector as it is kept, two bytes a dimension."""
    return vector.astype(FLOAT16).tobytes()


def from_bytes(kept: bytes) -> DenseVector:
    """Undo to_bytes, as far as float16 is exact."""
    return np.frombuffer(kept, FLOAT16).astype(np.float32)
