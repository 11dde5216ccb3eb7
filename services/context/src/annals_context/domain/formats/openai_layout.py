"""Contexts as OpenAI's chat messages.

Degraded events stay where they happened (see `degrading`). Older events are lines of one message
of role `system`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from annals_context.domain.events import Event
from annals_context.domain.formats import extras, lines
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.degrading import degraded
from annals_context.domain.formats.layout import Line, Parts, Piece, line_text
from annals_context.domain.formats.openai_chat import (
    Message,
    unit_messages,
)
from annals_context.domain.formats.rendering import Rendered, pairing_repairs
from annals_context.domain.model import DetailLevel
from annals_context.domain.pairing import Unit

_OPENING = '[{"'
_BETWEEN = '},{"'
_CLOSING = "}]"
_SYSTEM_OPENING = 'role":"system","content":"'
_NEXT_LINE = "\n#"


@dataclass(frozen=True, slots=True)
class OpenAiLayout:
    """Writes the JSON array of messages."""

    snippet_chars: int

    def brackets(self) -> tuple[str, ...]:
        """Return the brackets of the array."""
        return (_OPENING, _CLOSING)

    def system(self, prompt: str) -> Piece:
        """Write the system prompt as the first message."""
        return _piece({"role": "system", "content": prompt})

    def block_frame(self, heading: str) -> Piece:
        """Write the message around the lines."""
        return Piece(_block(heading, []))

    def line(self, line: Line) -> Piece:
        """Write a line up to where the next one begins."""
        return Piece(_escaped(self._line_text(line) + _NEXT_LINE), (line.event,))

    def native_frame(self) -> Piece:
        """Write nothing: messages need no heading."""
        return Piece("")

    def native(self, unit: Unit, detail: DetailLevel) -> tuple[Piece, ...]:
        """Write the messages of a unit."""
        if detail is not DetailLevel.FULL:
            shown = degraded(unit, detail, snippet_chars=self.snippet_chars)
            [only] = unit_messages(shown, extras.ContentRestorer())
            return (_piece(only.message, unit.events),)
        rendered = unit_messages(unit, extras.ContentRestorer())
        pieces = [_piece(one.message, one.events) for one in rendered]
        pieces[0] = replace(pieces[0], repairs=tuple(pairing_repairs(unit)))
        return tuple(pieces)

    def current(self, text: str) -> Piece:
        """Write the last message."""
        return _piece({"role": "user", "content": text})

    def empty(self) -> str:
        """Return one message that says so."""
        return dumps([{"role": "system", "content": lines.NO_MESSAGES}])

    def compose(self, parts: Parts) -> Rendered:
        """Return the array; it holds at least one message."""
        pieces = [self.system(parts.system).text] if parts.system else []
        if parts.lines:
            pieces.append(_block(parts.heading, [self._line_text(line) for line in parts.lines]))
        pieces.extend(piece.text for piece in parts.native)
        if parts.current:
            pieces.append(parts.current.text)
        if not pieces:
            return Rendered(self.empty(), ())
        payload = _OPENING + "".join(pieces).removesuffix(_BETWEEN) + _CLOSING
        return Rendered(payload, tuple(one for piece in parts.native for one in piece.repairs))

    def _line_text(self, line: Line) -> str:
        return line_text(line, self.snippet_chars)


def _block(heading: str, shown: list[str]) -> str:
    content = _NEXT_LINE.join([heading, *(shown or [""])])
    return f'{_SYSTEM_OPENING}{_escaped(content)}"{_BETWEEN}'


def _piece(message: Message, events: tuple[Event, ...] = ()) -> Piece:
    return Piece(dumps(message).removeprefix('{"').removesuffix("}") + _BETWEEN, events)


def _escaped(text: str) -> str:
    return dumps(text)[1:-1]
