"""What each piece of a context costs; every piece is counted once."""

from __future__ import annotations

from dataclasses import dataclass, field

from annals_context.domain.counting import Counter, surely_exceeds
from annals_context.domain.formats.layout import Layout, Line, Piece
from annals_context.domain.model import DetailLevel
from annals_context.domain.planning import Candidate


@dataclass(frozen=True, slots=True)
class PricedPiece:
    """A piece and its tokens."""

    piece: Piece
    tokens: int


@dataclass(slots=True)
class Pricing:
    """Prices candidates in one format and encoding."""

    layout: Layout
    counter: Counter
    _priced: dict[tuple[object, DetailLevel], tuple[PricedPiece, ...]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def count(self, text: str) -> int:
        """Return the tokens of a small text that recurs, such as a heading or a date."""
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = self.counter.count(text)
        return known

    def pieces(self, candidate: Candidate, detail: DetailLevel) -> tuple[PricedPiece, ...]:
        """Return what a candidate is written as."""
        key = (candidate.key, detail)
        known = self._priced.get(key)
        if known is None:
            known = self._priced[key] = self._price(candidate, detail)
        return known

    def tokens(self, candidate: Candidate, detail: DetailLevel) -> int:
        """Return the tokens of a candidate without frames and dates."""
        return sum(priced.tokens for priced in self.pieces(candidate, detail))

    def fits(self, candidate: Candidate, detail: DetailLevel, limit: int) -> bool:
        """Tell whether a candidate costs at most `limit`; giants are not read to their end."""
        if limit <= 0:
            return False
        is_priced = (candidate.key, detail) in self._priced
        if detail is DetailLevel.FULL and not is_priced and self._is_giant(candidate, limit):
            return False
        return self.tokens(candidate, detail) <= limit

    def frame_tokens(self, candidate: Candidate, heading: str) -> int:
        """Return the tokens of the frame that the first candidate of its kind opens."""
        layout = self.layout
        frame = layout.native_frame() if candidate.is_native else layout.block_frame(heading)
        return self.count(frame.text)

    def date_tokens(self, date: str) -> int:
        """Return the tokens a date adds to a line."""
        return self.count(f" [{date}]") if date else 0

    def _price(self, candidate: Candidate, detail: DetailLevel) -> tuple[PricedPiece, ...]:
        pieces = self._write(candidate, detail)
        return tuple(PricedPiece(piece, self.counter.count(piece.text)) for piece in pieces)

    def _write(self, candidate: Candidate, detail: DetailLevel) -> tuple[Piece, ...]:
        if candidate.is_native:
            return self.layout.native(candidate.unit, detail)
        return tuple(
            self.layout.line(Line(event, detail, candidate.start_of(event)))
            for event in candidate.unit.events
        )

    def surely_exceeds(self, text: str, limit: int) -> bool:
        """Tell by its length or a sample that a text takes more than `limit` tokens."""
        return surely_exceeds(self.counter, text, limit)

    def _is_giant(self, candidate: Candidate, limit: int) -> bool:
        return any(self.surely_exceeds(event.body, limit) for event in candidate.unit.events)
