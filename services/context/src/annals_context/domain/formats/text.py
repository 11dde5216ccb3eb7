"""Contexts and conversations as plain text with headings.

```
<system prompt>

Historical Matches (retrieve with get_message_by_id):
#41 [2024-10-15] user: "We need to implement rate limiting for…"
#57 assistant: "OAuth2 configuration should include…"

Recent Conversation:
[user]: What's our API authentication strategy?
[Ann (user)]: I would like to know as well.

Current Message:
[user]: And the token lifetime?
```

A date holds for the lines below it until the next. Text is indented so that it cannot pose as a
heading (see `lines`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event
from annals_context.domain.formats import lines
from annals_context.domain.formats.layout import Line, Parts, Piece, line_text
from annals_context.domain.formats.rendering import Rendered
from annals_context.domain.model import DetailLevel
from annals_context.domain.pairing import Unit, group_units

RECENT_HEADING = "Recent Conversation:\n"
CURRENT_HEADING = "Current Message:\n"
_NEXT_LINE = "\n#"
_SECTION_END = "\n"


def render(events: Sequence[Event]) -> str:
    """Return a whole conversation; results follow their calls. Nothing needs mending."""
    layout = TextLayout(snippet_chars=1)
    units = group_units(events)
    native = [piece for unit in units for piece in layout.native(unit, DetailLevel.FULL)]
    return layout.compose(Parts(native=native)).payload


@dataclass(frozen=True, slots=True)
class TextLayout:
    """Writes plain text."""

    snippet_chars: int

    def brackets(self) -> tuple[str, ...]:
        """Return nothing: a text just begins and ends."""
        return ()

    def system(self, prompt: str) -> Piece:
        """Write the system prompt and an empty line."""
        return Piece(f"{prompt}\n{_SECTION_END}")

    def block_frame(self, heading: str) -> Piece:
        """Write the heading of the historical block."""
        return Piece(f"{heading}{_NEXT_LINE}{_SECTION_END}")

    def line(self, line: Line) -> Piece:
        """Write a line up to where the next one begins."""
        return Piece(f"{self._line_text(line)}{_NEXT_LINE}", (line.event,))

    def native_frame(self) -> Piece:
        """Write the heading of the recent window."""
        return Piece(f"{RECENT_HEADING}{_SECTION_END}")

    def native(self, unit: Unit, detail: DetailLevel) -> tuple[Piece, ...]:
        """Write one line for each event."""
        return tuple(Piece(self._native_line(event, detail), (event,)) for event in unit.events)

    def current(self, text: str) -> Piece:
        """Write the last section."""
        return Piece(f"{CURRENT_HEADING}[user]: {lines.indented(text)}\n{_SECTION_END}")

    def empty(self) -> str:
        """Return a line that says so."""
        return f"{lines.NO_MESSAGES}\n"

    def compose(self, parts: Parts) -> Rendered:
        """Return the sections, an empty line between them and one line break at the end."""
        sections = [f"{parts.system}\n"] if parts.system else []
        if parts.lines:
            shown = [self._line_text(line) for line in parts.lines]
            sections.append(_NEXT_LINE.join([parts.heading, *shown]) + "\n")
        if parts.native:
            sections.append(RECENT_HEADING + "".join(piece.text for piece in parts.native))
        if parts.current:
            sections.append(parts.current.text.removesuffix(_SECTION_END))
        return Rendered(_SECTION_END.join(sections) if sections else self.empty(), ())

    def _line_text(self, line: Line) -> str:
        return line_text(line, self.snippet_chars)

    def _native_line(self, event: Event, detail: DetailLevel) -> str:
        who = lines.speaker_with_role(event)
        if detail is DetailLevel.STUB:
            return f"[{who} {event.handle}]\n"
        label = who if detail is DetailLevel.FULL else f"{who} {event.handle}"
        return f"[{label}]: {lines.words(event, detail, snippet_chars=self.snippet_chars)}\n"
