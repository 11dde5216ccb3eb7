"""Late interaction: every token of a query looks for the token of a text that is nearest to it.

MaxSim as in ColBERT (Khattab and Zaharia 2020), over the token vectors that the embedding model
makes anyway. Of a text's tokens only the signs are kept, 48 bytes for 384 dimensions: measured on
LoCoMo as good as float32 (docs/retrieval.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TokenVectors = NDArray[np.float32]
"""Shape (tokens, dimensions), rows L2-normalised; perhaps no rows."""

MAX_TOKENS = 64
"""Of a text or a query: bounds what a chunk takes in PostgreSQL to 3 KiB."""
BLOCK_TOKENS = 1_024
"""Unpacked at a time: 1.5 MiB, which stays in the cache."""


def pack_signs(tokens: TokenVectors) -> bytes:
    """Return one bit per dimension, token after token: whether it is positive."""
    return np.packbits(tokens > 0, axis=1).tobytes()


def max_similarities(query: TokenVectors, texts: Sequence[bytes]) -> NDArray[np.float32]:
    """Return MaxSim of the query with each text as packed by `pack_signs`, shape (len(texts),).

    The mean over the query's tokens of the greatest cosine with the signs of a token; 0 for a
    text without tokens.
    """
    scores = np.zeros(len(texts), np.float32)
    bytes_per_token = query.shape[1] // 8
    counts = np.array([len(packed) // bytes_per_token for packed in texts])
    if not len(query) or not counts.any():
        return scores
    packed = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, bytes_per_token)
    nearest = np.maximum.reduceat(_cosines(query, packed), _starts(counts), axis=1)
    scores[counts > 0] = nearest.mean(axis=0)
    return scores


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the tokens of each text that has some begin."""
    filled = counts[counts > 0]
    return np.cumsum(filled) - filled


def _cosines(query: TokenVectors, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the cosines, shape (tokens of the query, tokens of the texts)."""
    cosines = np.empty((len(query), len(packed)), np.float32)
    # One block of memory for all of them: fresh pages cost more than the product.
    unpacked = np.empty((min(BLOCK_TOKENS, len(packed)), query.shape[1]), np.float32)
    for start in range(0, len(packed), BLOCK_TOKENS):
        block = packed[start : start + BLOCK_TOKENS]
        bits = unpacked[: len(block)]
        bits[...] = np.unpackbits(block, axis=1)
        cosines[:, start : start + len(block)] = (bits @ query.T).T
    # The product with signs (−1, 1) is twice that with bits (0, 1) less the sum of the query.
    cosines *= 2
    cosines -= query.sum(axis=1, keepdims=True)
    cosines /= np.float32(np.sqrt(query.shape[1]))
    return cosines
