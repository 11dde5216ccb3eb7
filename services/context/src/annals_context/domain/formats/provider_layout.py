"""Contexts in the formats of Anthropic, Google and OpenAI's responses.

A context is a conversation to them: what stands there is written by the same code that renders
stored ones. The system prompt and the historical block are prompts before it; degraded events are
events that say so (see `degrading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import lines
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.formats.degrading import degraded, single
from annals_context.domain.formats.layout import Line, Parts, Piece, line_text
from annals_context.domain.formats.rendering import Rendered
from annals_context.domain.formats.turns import EMPTY_TEXT
from annals_context.domain.model import DetailLevel, Repair
from annals_context.domain.pairing import Unit

_BETWEEN = '},{"'
_NEXT_LINE = "\n#"


class ContextForm(Protocol):
    """What is particular to one provider."""

    @property
    def brackets(self) -> tuple[str, ...]:
        """Return what stands around all prompts and units."""
        ...

    def prompt(self, words: str) -> dict[str, object]:
        """Return a prompt among others."""
        ...

    def unit(self, unit: Unit) -> list[dict[str, object]]:
        """Return what a unit is written as between others; nothing when all of it is blank."""
        ...

    def compose(self, prompts: Sequence[Event], units: Sequence[Unit]) -> Rendered:
        """Return the payload. It is valid even without a unit."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderLayout:
    """Writes payloads of one form."""

    snippet_chars: int
    form: ContextForm

    def brackets(self) -> tuple[str, ...]:
        """Return what stands around everything."""
        return self.form.brackets

    def system(self, prompt: str) -> Piece:
        """Write the system prompt."""
        return Piece(_between([self.form.prompt(prompt)]))

    def block_frame(self, heading: str) -> Piece:
        """Write the prompt around the lines."""
        return self.system(heading + _NEXT_LINE)

    def line(self, line: Line) -> Piece:
        """Write a line up to where the next one begins."""
        shown = line_text(line, self.snippet_chars) + _NEXT_LINE
        return Piece(dumps(shown)[1:-1], (line.event,))

    def native_frame(self) -> Piece:
        """Write nothing: turns need no heading."""
        return Piece("")

    def native(self, unit: Unit, detail: DetailLevel) -> tuple[Piece, ...]:
        """Write a unit as one piece."""
        if detail is DetailLevel.FULL:
            return (self._piece(unit, unit.events),)
        shown = degraded(unit, detail, snippet_chars=self.snippet_chars)
        return (self._piece(shown, unit.events),)

    def current(self, text: str) -> Piece:
        """Write what the user says last."""
        return self._piece(single(_message(Role.USER, text)), ())

    def empty(self) -> str:
        """Return a prompt that says so."""
        return self.form.compose([_message(Role.SYSTEM, lines.NO_MESSAGES)], ()).payload

    def compose(self, parts: Parts) -> Rendered:
        """Return the payload."""
        shown = [parts.system] if parts.system else []
        if parts.lines:
            numbered = [line_text(line, self.snippet_chars) for line in parts.lines]
            shown.append(_NEXT_LINE.join([parts.heading, *numbered]))
        pieces = [*parts.native, *([parts.current] if parts.current else [])]
        if not shown and not pieces:
            return Rendered(self.empty(), ())
        prompts = [_message(Role.SYSTEM, words) for words in shown]
        rendered = self.form.compose(prompts, [piece.unit for piece in pieces if piece.unit])
        repairs = [repair for piece in pieces for repair in piece.repairs]
        return Rendered(rendered.payload, (*repairs, *rendered.repairs))

    def _piece(self, unit: Unit, events: tuple[Event, ...]) -> Piece:
        """Write a unit; a placeholder stands for one of nothing but blanks.

        It always has a place of its own, so that no event makes a payload shorter.
        """
        repairs: tuple[Repair, ...] = ()
        if unit.lead and not self.form.unit(unit):
            repairs = (Repair("message_empty", "", unit.lead.event_id),)
            unit = single(replace(unit.lead, content=EMPTY_TEXT, metadata={}))
        return Piece(_between(self.form.unit(unit)), events, unit, repairs)


def _message(role: Role, words: str) -> Event:
    return Event(type=EventType.MESSAGE, role=role, content=words)


def _between(objects: Sequence[dict[str, object]]) -> str:
    """Return objects as they stand in an array, from the first name to the next object's."""
    return "".join(dumps(one).removeprefix('{"').removesuffix("}") + _BETWEEN for one in objects)
