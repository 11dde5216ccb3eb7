"""What could go into a context, and in which order it is offered a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from annals_context.domain.events import Event
from annals_context.domain.model import ContextRequest, DetailLevel, Hit, Section
from annals_context.domain.pairing import Unit, group_units, is_tool_event
from annals_context.domain.pins import Pin, pin_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit, the section it would stand in and what the search found of it, by seq.

    `pin`: what a reader asked of it. `is_required`: it is there in full, or there is no context.
    """

    unit: Unit
    section: Section
    hits: Mapping[int, Hit] = field(default_factory=dict)
    pin: Pin | None = None
    is_required: bool = False

    @property
    def is_expanded(self) -> bool:
        """True when a reader asked for all of it."""
        return self.pin is not None and self.pin.level is DetailLevel.FULL

    def allows(self, detail: DetailLevel) -> bool:
        """Tell whether it may be shown so: what was collapsed is a stub at most."""
        return self.pin is None or self.is_expanded or detail is DetailLevel.STUB

    @property
    def score(self) -> float:
        """The best score of its events; 0 when none was searched for."""
        return max((hit.score for hit in self.hits.values()), default=0.0)

    def holds(self, event: Event) -> bool:
        """Tell whether an event is in the unit."""
        return any(own.seq == event.seq for own in self.unit.events)

    def score_of(self, event: Event) -> float:
        """Return the score of one of its events; 0 when it was not searched for."""
        hit = self.hits.get(event.seq)
        return hit.score if hit else 0.0

    def start_of(self, event: Event) -> int:
        """Return where a snippet of one of its events begins, in characters of its body."""
        hit = self.hits.get(event.seq)
        return hit.chunk_start if hit else 0

    @property
    def is_native(self) -> bool:
        """True when it stands in the recent window, as what it is."""
        return self.section is Section.RECENT

    @property
    def key(self) -> tuple[bool, tuple[int, ...]]:
        """Identify what it is written as."""
        return (self.is_native, tuple(event.seq for event in self.unit.events))

    @property
    def openings(self) -> frozenset[tuple[bool, str]]:
        """What it needs around it: its part of the payload, and the days of its lines."""
        if self.is_native:
            return frozenset({(True, "")})
        return frozenset({(False, ""), *((False, event.date) for event in self.unit.events)})

    @property
    def first_seq(self) -> int:
        """Position of its first event: where it stands."""
        return self.unit.events[0].seq

    @property
    def newest_seq(self) -> int:
        """Position of its newest event."""
        events = self.unit.events
        return events[0].seq if len(events) == 1 else max(event.seq for event in events)


@dataclass(frozen=True, slots=True)
class Plan:
    """Candidates in the order they are offered a place; `mandatory` comes before all.

    `expanded` are those of the others that a reader asked for in full, the required ones first,
    then the latest.
    """

    mandatory: Candidate | None
    recent: tuple[Candidate, ...]
    relevant: tuple[Candidate, ...]
    index: tuple[Candidate, ...]
    expanded: tuple[Candidate, ...] = ()


def make_plan(request: ContextRequest) -> Plan:
    """Sort the events of a request into sections; recent wins over relevant over index."""
    pool = _pool(request)
    recent_seqs = {event.seq for event in request.recent}
    must = None if request.current_message else _must_have(pool)
    if must:
        recent_seqs.add(must.seq)
    candidates = _candidates(pool, recent_seqs, request.relevant)
    return _sorted_plan([_pinned(candidate, request) for candidate in candidates], must)


def make_whole_plan(request: ContextRequest) -> Plan | None:
    """Plan the conversation as one recent window; None when events of it are collapsed or not at
    hand.
    """
    pool = _pool(request)
    if any(request.pins.get(event.seq) is DetailLevel.STUB for event in pool):
        return None
    if len(pool) < request.total_events or not pool:
        return None
    seqs = {event.seq for event in pool}
    return _sorted_plan(_candidates(pool, seqs, request.relevant), None)


def _pool(request: ContextRequest) -> list[Event]:
    found = [hit.event for hit in request.relevant]
    by_seq = {event.seq: event for event in (*request.others, *found, *request.recent)}
    pool = [by_seq[seq] for seq in sorted(by_seq)]
    if request.include_tool_calls:
        return pool
    return [event for event in pool if not is_tool_event(event)]


def _must_have(pool: Sequence[Event]) -> Event | None:
    """Return the newest message of the user, or the newest event when there is none."""
    of_user = (event for event in reversed(pool) if event.is_user_message)
    return next(of_user, pool[-1] if pool else None)


def _candidates(
    pool: Sequence[Event], recent_seqs: set[int], hits: Sequence[Hit]
) -> list[Candidate]:
    best = _best_hits(hits)
    candidates = []
    for unit in group_units(pool):
        if any(event.seq in recent_seqs for event in unit.events):
            candidates.append(_candidate(unit, Section.RECENT, best))
        else:
            candidates += [_historical(part, best) for part in unit.without_lead()]
    return candidates


def _historical(unit: Unit, best: Mapping[int, Hit]) -> Candidate:
    found = _candidate(unit, Section.RELEVANT, best)
    return found if found.hits else Candidate(unit, Section.INDEX)


def _candidate(unit: Unit, section: Section, best: Mapping[int, Hit]) -> Candidate:
    hits = {event.seq: best[event.seq] for event in unit.events if event.seq in best}
    return Candidate(unit, section, hits)


def _pinned(candidate: Candidate, request: ContextRequest) -> Candidate:
    """Note what a reader asked of it; what they expanded bears on what they want to know."""
    seqs = [event.seq for event in candidate.unit.events]
    pin = pin_of(request.pins, seqs)
    if pin is None:
        return candidate
    noted = replace(candidate, pin=pin, is_required=not request.required.isdisjoint(seqs))
    is_index = noted.is_expanded and noted.section is Section.INDEX
    return replace(noted, section=Section.RELEVANT) if is_index else noted


def _expansion_order(candidate: Candidate) -> tuple[bool, int]:
    return (candidate.is_required, candidate.pin.rank if candidate.pin else -1)


def _best_hits(hits: Iterable[Hit]) -> dict[int, Hit]:
    best: dict[int, Hit] = {}
    for hit in hits:
        known = best.get(hit.event.seq)
        if known is None or hit.score > known.score:
            best[hit.event.seq] = hit
    return best


def _sorted_plan(candidates: Iterable[Candidate], must: Event | None) -> Plan:
    newest_first = sorted(candidates, key=lambda one: one.newest_seq, reverse=True)
    mandatory = next((one for one in newest_first if must and one.holds(must)), None)
    by_section: dict[Section, list[Candidate]] = {section: [] for section in Section}
    for candidate in newest_first:
        if candidate is not mandatory:
            by_section[candidate.section].append(candidate)
    relevant = sorted(by_section[Section.RELEVANT], key=lambda one: one.score, reverse=True)
    recent, index = by_section[Section.RECENT], by_section[Section.INDEX]
    asked = [candidate for candidate in newest_first if candidate.is_expanded]
    expanded = sorted(asked, key=_expansion_order, reverse=True)
    return Plan(mandatory, tuple(recent), tuple(relevant), tuple(index), tuple(expanded))
