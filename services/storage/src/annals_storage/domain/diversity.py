"""Orders hits so that each says something new: maximal marginal relevance.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and
producing summaries", SIGIR 1998.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TINY = float(np.finfo(np.float64).tiny)


class Choice(NamedTuple):
    """One of the candidates: its place before, from 0, and its greatest cosine with one above."""

    place: int
    similarity: float


def diversified(
    scores: Sequence[float], vectors: NDArray[np.float32], diversity: float
) -> list[Choice]:
    """Return all candidates in their new order.

    Next is always who has the greatest (1 - diversity) · score / best score - diversity · cosine
    with the most similar of those above; of equals, who came first. `scores`: shape (n,), falling.
    `vectors`: shape (n, dimensions), L2-normalised, or zero where unknown: like nothing else.
    """
    best = max(scores, default=0.0)
    # A best score that is a normal number makes no quotient overflow; scores are -1 to 1.
    relevance = np.asarray(scores, np.float64) / (best if abs(best) >= TINY else 1.0)
    cosines = vectors @ vectors.T
    nearest = np.zeros(len(scores))
    waiting = np.ones(len(scores), bool)
    chosen: list[Choice] = []
    for _ in scores:
        value = (1.0 - diversity) * relevance - diversity * nearest
        place = int(np.argmax(np.where(waiting, value, -np.inf)))
        chosen.append(Choice(place, float(nearest[place])))
        waiting[place] = False
        nearest = cosines[place] if len(chosen) == 1 else np.maximum(nearest, cosines[place])
    return chosen
