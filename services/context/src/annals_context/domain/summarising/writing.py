"""Writes a summary: lines of speakers in the order they spoke, within a token limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annals_context.domain.material import SummaryLevel
from annals_context.domain.snippets import ELLIPSIS, cut_to_graphemes
from annals_context.domain.summarising.pieces import Piece
from annals_context.domain.summarising.quality import coverage
from annals_context.domain.summarising.selecting import Limits, select

ALGORITHM = "coverage-1"
"""Names how summaries are made; another one makes all of them anew."""
LIMITS = {
    SummaryLevel.BRIEF: Limits(max_tokens=80, max_pieces=2),
    SummaryLevel.STANDARD: Limits(max_tokens=200, max_pieces=12),
    SummaryLevel.DETAILED: Limits(max_tokens=600, max_pieces=40),
}


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a piece stands in the text, in characters, and what it cites."""

    piece: Piece
    text_start: int
    text_end: int


@dataclass(frozen=True, slots=True)
class Digest:
    """A text of cited pieces. `quality_score`: see quality.coverage."""

    text: str
    tokens: int
    citations: tuple[Citation, ...]
    quality_score: float


def digest(
    pieces: Sequence[Piece],
    limits: Limits,
    count: Callable[[str], int],
    *,
    focus: str = "",
    source_quality: float = 1.0,
) -> Digest:
    """Return the best summary of some pieces, in their order, of at most `limits` by `count`.

    `source_quality`: how much of the source the pieces stand for, when they are a summary
    themselves. Empty when there are none, or when not a word fits.
    """
    chosen = select(pieces, limits, count, focus=focus)
    while chosen:
        kept = [pieces[index] for index in sorted(chosen)]
        text, citations = _written(kept)
        tokens = count(text)
        if tokens <= limits.max_tokens:
            quality = round(coverage(kept, pieces) * source_quality, 4)
            return Digest(text, tokens, citations, quality)
        if len(chosen) == 1:
            return _cut(kept[0], limits, count)
        chosen.pop()
    return Digest("", 0, (), 0.0)


def least_tokens(
    pieces: Sequence[Piece], limits: Limits, count: Callable[[str], int], *, focus: str = ""
) -> int:
    """Return the least limit above one under which not a word of the pieces fits."""
    best = [pieces[select(pieces, limits, count, focus=focus)[0]]]
    enough = count(_written(best)[0])
    tried = range(limits.max_tokens + 1, enough)
    return next((tokens for tokens in tried if digest(best, Limits(tokens, 1), count).text), enough)


def _cut(piece: Piece, limits: Limits, count: Callable[[str], int]) -> Digest:
    """Return as much of a single piece as fits."""
    chars = len(piece.text) // 2
    while chars:
        cut = f"{cut_to_graphemes(piece.text.removesuffix(ELLIPSIS), chars)}{ELLIPSIS}"
        shorter = Piece(piece.event_id, piece.seq, piece.speaker, piece.date, cut)
        text, citations = _written([shorter])
        if (tokens := count(text)) <= limits.max_tokens:
            return Digest(text, tokens, citations, 0.0)
        chars //= 2
    return Digest("", 0, (), 0.0)


def _written(pieces: Sequence[Piece]) -> tuple[str, tuple[Citation, ...]]:
    """Pieces of one event share a line; a day is named where it begins."""
    text, date, seq = "", "", 0
    citations: list[Citation] = []
    for piece in pieces:
        if piece.seq == seq:
            text += " "
        else:
            day = f"[{piece.date}] " if piece.date and piece.date != date else ""
            text += f"{_line_end(text, day)}{day}{piece.speaker}: "
            date, seq = piece.date or date, piece.seq
        citations.append(Citation(piece, len(text), len(text) + len(piece.text)))
        text += piece.text
    return text, tuple(citations)


def _line_end(text: str, day: str) -> str:
    if not text:
        return ""
    return "\n\n" if day else "\n"
