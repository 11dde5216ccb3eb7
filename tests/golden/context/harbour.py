"""One conversation of any length, and what background work would know of it.

A small harbour office and its assistant, a message every two hours. It moves from subject to
subject in runs of a dozen messages, and now and then looks something up. Everything follows from
the number of the message, so that the first 30 messages are the same in every length.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.context.histories import message, tool_call, tool_result

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.material import Period, Summary, SummaryLevel, Topic
from annals_context.domain.model import Hit
from annals_context.domain.snippets import best_sentence, words

QUESTION = "When does the insurance of the ferry run out, and who pays for the survey?"
FACTS = {
    7: "The ferry's insurance runs out on 30 June; the survey before that is paid by the owner.",
    22: "The insurer wants the survey of the ferry done in dry dock, not afloat.",
}
SUBJECTS = {
    "ferry insurance": (
        "The insurer asked for photographs of the hull, set {n}.",
        "Premium quote {n} arrived; it is higher than last year's.",
        "Please keep the damage report {n} with the policy papers.",
    ),
    "crew rota": (
        "Swap of shift {n}: Maria takes the early boat, Jonas the late one.",
        "The rota for week {n} has a gap on Sunday evening.",
        "Jonas asked for leave; request {n} is on your desk.",
    ),
    "engine overhaul": (
        "The workshop ordered part {n} for the port engine.",
        "Oil pressure was low again on trip {n}, the gauge may be wrong.",
        "Overhaul step {n} took four hours longer than planned.",
    ),
    "ticket prices": (
        "Proposal {n}: children under twelve travel at half price.",
        "The island council answered letter {n} about season tickets.",
        "Ticket machine {n} gives too much change.",
    ),
    "winter timetable": (
        "Draft {n} of the winter timetable leaves out the noon crossing.",
        "Passengers complained about departure {n} in the dark.",
        "The school wants crossing {n} ten minutes earlier.",
    ),
    "harbour permits": (
        "Permit {n} for the new pontoon needs a drawing to scale.",
        "The harbour master signed form {n} and wants a copy.",
        "Dredging notice {n} is open for objections until Friday.",
    ),
}
EVENTS_PER_RUN = 12
STARTED_AT = datetime(2024, 1, 8, 8, tzinfo=UTC)
_LABELS = tuple(SUBJECTS)
_SPAN_OF_SUMMARY = 100
_MAX_SUMMARIES = 12


def subject_of(seq: int) -> str:
    """Return what the message at a position is about; runs come in a fixed, uneven order."""
    run = (seq - 1) // EVENTS_PER_RUN
    return _LABELS[(run * 5 + run // 4) % len(_LABELS)]


def harbour(n_events: int) -> list[Event]:
    """Return the conversation's first events."""
    return [
        replace(
            _said(seq),
            seq=seq,
            event_id=f"event-{seq}",
            event_time=STARTED_AT + timedelta(hours=2 * seq),
        )
        for seq in range(1, n_events + 1)
    ]


def _said(seq: int) -> Event:
    if seq in FACTS:
        return message(FACTS[seq], Role.ASSISTANT)
    match seq % 50:
        case 17:
            return tool_call(f"call_{seq}", f'{{"boat": {seq % 4 + 1}}}', "position")
        case 18:
            result = f'{{"boat": {(seq - 1) % 4 + 1}, "lat": 54.5, "knots": {seq % 9}}}'
            return tool_result(f"call_{seq - 1}", result, "position")
    templates = SUBJECTS[subject_of(seq)]
    role = (Role.USER, Role.ASSISTANT)[seq % 2]
    return message(templates[seq * 7 // 3 % len(templates)].format(n=seq), role)


def found(events: Sequence[Event], limit: int) -> list[Hit]:
    """Stand in for the search: events by the words they share with the question."""
    wanted = set(words(QUESTION)) - {"the", "and", "does", "when", "for", "who"}
    hits = []
    for event in events:
        shared = len(wanted & set(words(event.body.replace("'s", " "))))
        if shared:
            start = best_sentence(event.body, 0, len(event.body), QUESTION)
            hits.append(Hit(event, shared / len(wanted), start, len(event.body)))
    return sorted(hits, key=lambda hit: (-hit.score, -hit.event.seq))[:limit]


def topics_of(events: Sequence[Event]) -> list[Topic]:
    """Return a topic for each subject, the largest first."""
    by_subject: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.type is EventType.MESSAGE:
            by_subject[subject_of(event.seq)].append(event)
    made = [_topic(label, own) for label, own in by_subject.items()]
    return sorted(made, key=lambda one: (-one.event_count, one.topic_id))


def _topic(label: str, own: Sequence[Event]) -> Topic:
    first, last = own[0].event_time, own[-1].event_time
    assert first
    assert last
    return Topic(
        topic_id=f"t-{label.split(maxsplit=1)[0]}",
        label=label,
        event_count=len(own),
        first_at=first,
        last_at=last,
        summary=" ".join(event.content for event in own[1:3]),
        samples=tuple(event.content for event in own[-2:]),
    )


def periods_of(events: Sequence[Event]) -> list[Period]:
    """Return the periods as seen from the newest event, with the topics of each."""
    newest = events[-1].event_time
    assert newest
    today = newest.replace(hour=0, minute=0)
    starts = {
        "today": today,
        "this_week": today - timedelta(days=today.weekday()),
        "this_month": today.replace(day=1),
    }
    counted: dict[str, Counter[str]] = {name: Counter() for name in (*starts, "older")}
    for event in events:
        inside = (name for name, start in starts.items() if event.event_time >= start)
        counted[next(inside, "older")][subject_of(event.seq)] += 1
    return [
        Period(
            name,
            sum(own.values()),
            tuple((f"t-{label.split()[0]}", label, n) for label, n in own.most_common()),
        )
        for name, own in counted.items()
    ]


def summaries_of(events: Sequence[Event]) -> list[Summary]:
    """Return summaries that cover everything, each of as many events as it takes for a dozen."""
    span = max(_SPAN_OF_SUMMARY, -(-len(events) // _MAX_SUMMARIES))
    return [_summary(events[at : at + span]) for at in range(0, len(events), span)]


def _summary(part: Sequence[Event]) -> Summary:
    subjects = Counter(subject_of(event.seq) for event in part).most_common(3)
    named = ", ".join(label for label, _ in subjects)
    return Summary(
        summary_id=f"s-{part[0].seq}",
        level=SummaryLevel.BRIEF,
        text=f"Mostly {named}. {part[len(part) // 2].body}",
        first_seq=part[0].seq,
        last_seq=part[-1].seq,
        created_at=STARTED_AT,
    )
