"""Tool calls and their results: what belongs together stays together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from annals_context.domain.events import TOOL_TYPES, Event, EventType, Role
from annals_context.domain.formats import extras


@dataclass(frozen=True, slots=True)
class Unit:
    """Events that are shown together or not at all.

    Either `lead` alone (a message, a note, an error, a result whose call is not there), or the
    parallel `calls` of one turn with their `results`, led by what the assistant said with them.
    `results` holds (index of the call, result) in the order of the conversation; `events` holds
    all of them in the order of a payload.
    """

    events: tuple[Event, ...]
    lead: Event | None = None
    calls: tuple[Event, ...] = ()
    results: tuple[tuple[int, Event], ...] = ()

    @property
    def unanswered(self) -> tuple[int, ...]:
        """Indexes of the calls without a result."""
        answered = {index for index, _ in self.results}
        return tuple(index for index in range(len(self.calls)) if index not in answered)

    def without_lead(self) -> tuple[Unit, ...]:
        """Return it with the assistant's words as a unit of their own."""
        if self.lead is None or not self.calls:
            return (self,)
        head, rest = self.events[:1], self.events[1:]
        return (Unit(head, self.lead), Unit(rest, calls=self.calls, results=self.results))


@dataclass(slots=True)
class _Draft:
    lead: Event | None = None
    calls: list[Event] = field(default_factory=list)
    results: list[tuple[int, Event]] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)

    def freeze(self) -> Unit:
        lead = (self.lead,) if self.lead else ()
        events = (*lead, *self.calls, *(result for _, result in self.results))
        return Unit(events, self.lead, tuple(self.calls), tuple(self.results))

    def open_call(self, tool_call_id: str) -> int | None:
        for index, call in enumerate(self.calls):
            if call.tool_call_id == tool_call_id and index not in self.answered:
                return index
        return None

    def answer(self, index: int, result: Event) -> None:
        self.answered.add(index)
        self.results.append((index, result))


def group_units(events: Iterable[Event]) -> list[Unit]:
    """Group events, given in order, into units; a unit stands where its first event stands.

    A result answers the latest call of its id that is still open. Calls that follow each other,
    or what the assistant said, without a gap in one turn are one group.
    """
    drafts: list[_Draft] = []
    drafts_by_call_id: dict[str, list[_Draft]] = {}
    previous: Event | None = None
    for event in events:
        _add(event, previous, drafts, drafts_by_call_id)
        previous = event
    return [draft.freeze() for draft in drafts]


def unpaired_tool_call_ids(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the ids of calls without results and of results without calls, in order."""
    ids: list[str] = []
    if not any(is_tool_event(event) for event in events):
        return ()
    for unit in group_units(sorted(events, key=lambda event: event.seq)):
        ids.extend(unit.calls[index].tool_call_id for index in unit.unanswered)
        if unit.lead and unit.lead.type is EventType.TOOL_RESULT:
            ids.append(unit.lead.tool_call_id)
    return tuple(dict.fromkeys(ids))


def _add(
    event: Event,
    previous: Event | None,
    drafts: list[_Draft],
    drafts_by_call_id: dict[str, list[_Draft]],
) -> None:
    if event.type is EventType.TOOL_CALL:
        _add_call(event, previous, drafts, drafts_by_call_id)
    elif event.type is not EventType.TOOL_RESULT or not _answer(event, drafts_by_call_id):
        drafts.append(_Draft(lead=event))


def _add_call(
    call: Event,
    previous: Event | None,
    drafts: list[_Draft],
    drafts_by_call_id: dict[str, list[_Draft]],
) -> None:
    if previous is None or not _continues(previous, call):
        drafts.append(_Draft())
    drafts[-1].calls.append(call)
    drafts_by_call_id.setdefault(call.tool_call_id, []).append(drafts[-1])


def _answer(result: Event, drafts_by_call_id: dict[str, list[_Draft]]) -> bool:
    waiting = drafts_by_call_id.get(result.tool_call_id, [])
    while waiting:
        index = waiting[-1].open_call(result.tool_call_id)
        if index is not None:
            waiting[-1].answer(index, result)
            return True
        waiting.pop()
    return False


def _continues(previous: Event, call: Event) -> bool:
    """Tell whether `call` belongs to the assistant's message that `previous` is part of."""
    speaks = previous.type is EventType.MESSAGE and previous.role is Role.ASSISTANT
    if not speaks and previous.type is not EventType.TOOL_CALL:
        return False
    if call.seq and previous.seq and call.seq != previous.seq + 1:
        return False
    ids = {previous.provider_response_id, call.provider_response_id} - {""}
    return len(ids) <= 1 and not extras.begins_message(call)


def is_tool_event(event: Event) -> bool:
    """Tell whether the event is a tool call or a tool result."""
    return event.type in TOOL_TYPES
