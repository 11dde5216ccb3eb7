"""Events that are not shown whole, as events that say so.

A message keeps its speaker and ends with its handle. A tool group becomes one note with a line for
each of its events, so that no call is ever without its result.
"""

from __future__ import annotations

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import lines
from annals_context.domain.formats.layout import Line, line_text
from annals_context.domain.model import DetailLevel
from annals_context.domain.pairing import Unit
from annals_context.domain.snippets import snippet


def degraded(unit: Unit, detail: DetailLevel, *, snippet_chars: int) -> Unit:
    """Return a unit of one event that shows `unit` as a snippet or a stub."""
    if unit.calls or unit.lead is None:
        return single(_note(unit, detail, snippet_chars))
    return single(_shortened(unit.lead, detail, snippet_chars))


def single(event: Event) -> Unit:
    """Return an event as a unit."""
    return Unit((event,), event)


def _note(unit: Unit, detail: DetailLevel, snippet_chars: int) -> Event:
    numbered = [f"#{line_text(Line(event, detail), snippet_chars)}" for event in unit.events]
    return Event(type=EventType.SYSTEM, content="\n".join(numbered))


def _shortened(event: Event, detail: DetailLevel, snippet_chars: int) -> Event:
    shown = f"[{event.handle}]"
    if detail is DetailLevel.SNIPPET:
        shown = f"{snippet(event.body, max_chars=snippet_chars)} {shown}"
    words = f"{lines.speaker(event)}: {shown}"
    match event.type:
        case EventType.MESSAGE:
            return Event(
                type=event.type, role=event.role, content=shown, author_name=event.author_name
            )
        case EventType.TOOL_RESULT:
            return Event(type=EventType.MESSAGE, role=Role.USER, content=words)
        case _:
            return Event(type=EventType.SYSTEM, content=words)
