"""How good a summary is, between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

from annals_context.domain.events import Event
from annals_context.domain.summarising.pieces import Piece, is_verbatim
from annals_context.domain.summarising.selecting import Weights, terms_of


def coverage(chosen: Sequence[Piece], source: Sequence[Piece]) -> float:
    """Return the share of the source's terms, each as often as a sentence has it, that the
    chosen pieces have too. 1 when there are none.
    """
    counts = Weights(source).counts
    total = sum(counts.values())
    if not total:
        return 1.0
    said = {term for piece in chosen for term in terms_of(piece.text)}
    return sum(count for term, count in counts.items() if term in said) / total


def faithfulness(chosen: Sequence[Piece], events: Sequence[Event]) -> float:
    """Return the share of the pieces that the events they cite say word for word."""
    if not chosen:
        return 1.0
    return sum(is_verbatim(piece, events) for piece in chosen) / len(chosen)
