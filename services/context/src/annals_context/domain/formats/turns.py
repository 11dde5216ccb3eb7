"""A conversation as turns of two speakers, as Anthropic and Google want it.

Turns alternate: what one speaker says in a row is one turn. Results of tools stand right after the
turn that called, before anything else the user says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats.rendering import lone_result_text, pairing_repairs
from annals_context.domain.model import Repair
from annals_context.domain.pairing import Unit, group_units

EMPTY_TEXT = "(empty message)"
"""Stands where a provider refuses a message without words."""
OPENING_TEXT = "(the conversation begins here)"
"""Stands where a provider refuses a conversation that the assistant begins."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one event says: `event` in the words of `text`; or a call or a result of a tool.

    `text` is None when the words of the event are shown with their parts. `event` is None for a
    placeholder. `call` is the call that a result answers.
    """

    event: Event | None
    text: str | None = None
    call: Event | None = None


@dataclass(slots=True)
class Turn:
    """What one speaker says in a row."""

    is_assistant: bool
    said: list[Said] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Prompts that precede everything, the turns that follow, and what had to be mended."""

    prompts: tuple[Event, ...]
    turns: tuple[Turn, ...]
    repairs: tuple[Repair, ...]


def dialogue(events: Sequence[Event]) -> Dialogue:
    """Return events, given in order, as turns. The first turn is the user's, if there is one."""
    found = in_turns((), group_units(events))
    return opened(found, OPENING_TEXT) if found.turns else found


def in_turns(prompts: Sequence[Event], units: Sequence[Unit]) -> Dialogue:
    """Return units as turns, whoever begins; prompts that lead them are added to `prompts`."""
    leading = _prompts(units)
    turns: list[Turn] = []
    repairs: list[Repair] = []
    for unit in units[len(leading) :]:
        repairs += pairing_repairs(unit)
        for is_assistant, said in _said(unit):
            if not turns or turns[-1].is_assistant != is_assistant:
                turns.append(Turn(is_assistant))
            turns[-1].said.append(said)
    return Dialogue((*prompts, *leading), tuple(turns), tuple(repairs))


def opened(source: Dialogue, text: str) -> Dialogue:
    """Have the user begin, saying `text`, where nobody else of the user's side does."""
    if source.turns and not source.turns[0].is_assistant:
        return source
    opening = Turn(is_assistant=False, said=[Said(None, text)])
    repairs = (*source.repairs, Repair("user_message_missing", ""))
    return Dialogue(source.prompts, (opening, *source.turns), repairs)


def is_prompt(event: Event) -> bool:
    """Tell whether it is a message of role system."""
    return event.type is EventType.MESSAGE and event.role is Role.SYSTEM


def _prompts(units: Sequence[Unit]) -> tuple[Event, ...]:
    """Return the system prompts before anybody speaks."""
    found: list[Event] = []
    for unit in units:
        if unit.lead is None or unit.calls or not is_prompt(unit.lead):
            break
        found.append(unit.lead)
    return tuple(found)


def _said(unit: Unit) -> list[tuple[bool, Said]]:
    if not unit.calls:
        return [_lead(unit.lead)] if unit.lead else []
    said = [_lead(unit.lead)] if unit.lead else []
    said += [(True, Said(call)) for call in unit.calls]
    results = dict(unit.results)
    for index, call in enumerate(unit.calls):
        said.append((False, Said(results.get(index), call=call)))
    return said


def _lead(event: Event) -> tuple[bool, Said]:
    is_assistant = event.type is EventType.MESSAGE and event.role is Role.ASSISTANT
    return is_assistant, Said(event, None if speaks(event) else _words(event))


def speaks(event: Event) -> bool:
    """Tell whether the user or the assistant says it."""
    return event.type is EventType.MESSAGE and event.role in {Role.USER, Role.ASSISTANT}


def _words(event: Event) -> str:
    match event.type:
        case EventType.TOOL_RESULT:
            return lone_result_text(event)
        case EventType.ERROR:
            return f"[error]: {event.error_type}: {event.error_message}"
        case EventType.SYSTEM:
            return f"[system]: {event.content}"
        case _:
            return f"[{event.role or EventType.SYSTEM}]: {event.content}"
