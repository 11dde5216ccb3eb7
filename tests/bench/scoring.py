"""Retrieval metrics."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence


def recall_at(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return |gold ∩ top-k| ÷ |gold|."""
    return len(set(ranking[:k]) & set(gold)) / len(gold)


def recall_all_at(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return 1 when all gold is inside top-k, else 0."""
    return float(set(gold) <= set(ranking[:k]))


def recall_any_at(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return 1 when any gold is inside top-k, else 0."""
    return float(bool(set(gold) & set(ranking[:k])))


def reciprocal_rank(ranking: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """Return 1 ÷ the rank of the first gold item; 0 when there is none."""
    ranks = (rank for rank, item in enumerate(ranking, start=1) if item in gold)
    return next((1.0 / rank for rank in ranks), 0.0)


def ndcg_any_at(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Return DCG ÷ ideal DCG with DCG = rel₁ + Σ_{i≥2} relᵢ / log₂ i, relevance 0 or 1."""
    ideal = _dcg([1.0] * min(k, len(gold)))
    return _dcg([float(item in gold) for item in ranking[:k]]) / ideal


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def _dcg(relevances: Sequence[float]) -> float:
    return sum(
        relevance / (math.log2(place) if place > 1 else 1.0)
        for place, relevance in enumerate(relevances, start=1)
    )
