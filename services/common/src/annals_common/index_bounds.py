"""What the numbers of an index configuration may be, for an agent and for a request alike."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """Both ends are allowed."""

    low: float
    high: float


INDEX_BOUNDS = {
    "recent_events": Bounds(1, 1_000),
    "snippet_chars": Bounds(1, 10_000),
    "max_index_tokens": Bounds(0, 10_000_000),
    "clustering_threshold": Bounds(0, 1),
    "min_cluster_size": Bounds(1, 100_000),
    "summary_ratio": Bounds(0, 1),
    "chunk_threshold_tokens": Bounds(1, 10_000_000),
}
