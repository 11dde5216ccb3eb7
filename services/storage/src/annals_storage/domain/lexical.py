"""Words of chunks and memories as PostgreSQL keeps them, to search without the vector engine.

A term is the number the sparse encoder gives it, made the tenant's own: equal words of two tenants
have different keys, so that looking one up meets nobody else's rows.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from annals_storage.domain.search import SparseVector

MAX_QUERY_TERMS = 64
"""More are left out of a query: PostgreSQL counts the rows of each, up to 1,000."""
WEIGHT_STEPS = 100
"""Weights are kept in hundredths; those of BM25 stay below 2.2."""
_MAX_STEPS = 255
_HALF, _WHOLE = 2**31, 2**32


class KeptTerms(NamedTuple):
    """Distinct terms, signed 32 bits each, and their weights, one byte each in hundredths."""

    keys: list[int]
    weights: bytes


def kept_terms(tenant_id: UUID, vector: SparseVector) -> KeptTerms:
    """Return what is kept of a text's term weights; those above 2.55 count as that."""
    steps = [min(_MAX_STEPS, max(0, round(value * WEIGHT_STEPS))) for value in vector.values]
    return KeptTerms(_keys(tenant_id, vector.indices), bytes(steps))


def query_terms(tenant_id: UUID, vector: SparseVector) -> list[int]:
    """Return the keys to look up, at most MAX_QUERY_TERMS, always the same ones of a query."""
    return _keys(tenant_id, sorted(vector.indices)[:MAX_QUERY_TERMS])


def _keys(tenant_id: UUID, indices: tuple[int, ...] | list[int]) -> list[int]:
    mask = _mask(tenant_id)
    return [((index ^ mask) + _HALF) % _WHOLE - _HALF for index in indices]


@lru_cache(4096)
def _mask(tenant_id: UUID) -> int:
    return int.from_bytes(hashlib.sha256(tenant_id.bytes).digest()[:4])
