"""The seam between choosing what goes into a context and writing it down.

A payload is a sequence of pieces cut where the encodings always cut as well: before a digit
after "#", before the word `role` after a brace, before a heading or a bracket after a line
break. Tokens of pieces therefore add up, and fitting needs to count each piece only once.
Nothing relies on it for the budget: the finished payload is counted as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from annals_context.domain.events import Event
from annals_context.domain.formats import lines
from annals_context.domain.formats.rendering import Rendered
from annals_context.domain.model import DetailLevel, Repair
from annals_context.domain.pairing import Unit


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a payload, as it stands there, and the events whose words it holds.

    `unit`: what it is written from, where the payload is not just the sum of its pieces. `repairs`:
    what had to be mended in it.
    """

    text: str
    events: tuple[Event, ...] = ()
    unit: Unit | None = None
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the historical block; `date` is set on the first line of a day."""

    event: Event
    detail: DetailLevel
    start: int = 0
    date: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a payload is made of, in its order. `current` is None or what the user says."""

    system: str = ""
    heading: str = ""
    lines: Sequence[Line] = ()
    native: Sequence[Piece] = ()
    current: Piece | None = None


class Layout(Protocol):
    """Writes pieces in one format. `snippet_chars` is fixed when it is made."""

    def brackets(self) -> tuple[str, ...]:
        """Return what stands around all pieces."""
        ...

    def system(self, prompt: str) -> Piece:
        """Write the system prompt."""
        ...

    def block_frame(self, heading: str) -> Piece:
        """Write the historical block without its lines."""
        ...

    def line(self, line: Line) -> Piece:
        """Write one line of the historical block."""
        ...

    def native_frame(self) -> Piece:
        """Write what precedes the recent window."""
        ...

    def native(self, unit: Unit, detail: DetailLevel) -> tuple[Piece, ...]:
        """Write a unit of the recent window."""
        ...

    def current(self, text: str) -> Piece:
        """Write what the user says now."""
        ...

    def empty(self) -> str:
        """Return a payload that says that there is nothing."""
        ...

    def compose(self, parts: Parts) -> Rendered:
        """Return the payload and what had to be mended in it."""
        ...


def line_text(line: Line, snippet_chars: int) -> str:
    """Return a line of the historical block without the "#" before it."""
    return lines.numbered_line(
        line.event, line.detail, snippet_chars=snippet_chars, start=line.start, date=line.date
    )
