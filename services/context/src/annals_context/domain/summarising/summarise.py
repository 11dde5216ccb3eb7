"""Summaries of events, and summaries of summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from annals_context.domain.events import Event
from annals_context.domain.summarising.pieces import Piece, pieces_of
from annals_context.domain.summarising.quality import faithfulness
from annals_context.domain.summarising.selecting import Limits
from annals_context.domain.summarising.writing import Digest, digest


def summary_of_events(
    events: Sequence[Event], limits: Limits, count: Callable[[str], int], *, focus: str = ""
) -> Digest:
    """Return the summary of some events, oldest first: its quality is the coverage of what they
    say, times the share of it that they do say.
    """
    made = digest(pieces_of(events), limits, count, focus=focus)
    cited = [citation.piece for citation in made.citations]
    quality = round(made.quality_score * faithfulness(cited, events), 4)
    return replace(made, quality_score=quality)


def summary_of_summaries(
    parts: Sequence[Digest], limits: Limits, count: Callable[[str], int], *, focus: str = ""
) -> Digest:
    """Return the summary of what some summaries say, oldest first: it covers no more of the
    events than they do on average.
    """
    pieces: list[Piece] = [citation.piece for part in parts for citation in part.citations]
    told = [part.quality_score for part in parts if part.citations]
    quality = sum(told) / len(told) if told else 1.0
    return digest(pieces, limits, count, focus=focus, source_quality=quality)
