"""What writing events for a provider has in common, whichever it is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from annals_context.domain.events import Event, EventType
from annals_context.domain.formats.compact_json import dumps
from annals_context.domain.model import Repair
from annals_context.domain.pairing import Unit

MISSING_RESULT = "(no result was recorded for this call)"
ERROR_PREFIX = "Error: "
_DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class Rendered:
    """A payload and what had to be mended in it."""

    payload: str
    repairs: tuple[Repair, ...]


def pairing_repairs(unit: Unit) -> list[Repair]:
    """Return what of a unit's tool calls and results had to be mended."""
    if unit.lead and unit.lead.type is EventType.TOOL_RESULT:
        return [Repair("tool_call_missing", unit.lead.tool_call_id, unit.lead.event_id)]
    calls = [unit.calls[index] for index in unit.unanswered]
    return [Repair("tool_result_missing", call.tool_call_id, call.event_id) for call in calls]


def lone_result_text(event: Event) -> str:
    """Return a result whose call is not there, as words."""
    return f"[result of {event.tool_name or 'a tool'}, call {event.tool_call_id}]: " + (
        result_text(event)
    )


def result_text(result: Event) -> str:
    """Return a result where the format cannot say that it failed."""
    return f"{ERROR_PREFIX}{result.tool_result}" if result.is_error else result.tool_result


def distinct(ids: Sequence[str]) -> list[str]:
    """Make ids distinct by numbering repeated ones."""
    seen: set[str] = set(ids)
    taken: set[str] = set()
    following: dict[str, int] = {}
    chosen_ids = []
    for one in ids:
        chosen, number = one, following.get(one, 2)
        while chosen in taken or (chosen != one and chosen in seen):
            chosen, number = f"{one}-{number}", number + 1
        taken.add(chosen)
        following[one] = number
        chosen_ids.append(chosen)
    return chosen_ids


def call_ids(calls: Sequence[Event], written: Callable[[str], str] = str) -> Mapping[int, str]:
    """Return distinct ids of calls by the identity of the event; `written` mends a single one."""
    chosen = distinct([written(call.tool_call_id) for call in calls])
    return {id(call): one for call, one in zip(calls, chosen, strict=True)}


def arguments_object(arguments: str) -> dict[str, object]:
    """Return a call's arguments as an object; what is none becomes its member `value`."""
    try:
        value: object = json.loads(arguments) if arguments.strip() else {}
        dumps(value).encode()
    except (ValueError, RecursionError):
        # Not JSON, or nothing that a payload could hold, as half a surrogate pair.
        value = arguments
    return value if isinstance(value, dict) else {"value": value}


def plain_name(name: str, unsafe: re.Pattern[str], max_chars: int) -> str:
    """Return a name itself, or one like it of the characters that are allowed and a digest."""
    if name and len(name) <= max_chars and not unsafe.search(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{unsafe.sub('_', name)[: max_chars - _DIGEST_CHARS - 1]}_{digest}"
