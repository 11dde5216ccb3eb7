"""For every sequence of expanding, collapsing and focusing: it fits, and shows what was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.context.checks import check_context
from tests.unit.context.histories import History, histories, message, placed
from tests.unit.context.profiles import PROFILE
from tests.unit.context.test_assembly import LONG, chat, places, prepared, request
from tests.unit.context.test_assembly_properties import requests

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.assembly import assemble
from annals_context.domain.model import ContextRequest, DetailLevel, Hit, PreparedContext
from annals_context.domain.pairing import group_units, is_tool_event
from annals_context.domain.pins import (
    DetailChange,
    changes_between,
    kept_pins,
    pin_of,
    shown_levels,
    with_level,
)

FULL, SNIPPET, STUB = DetailLevel


@st.composite
def walks(draw: st.DrawFn) -> tuple[ContextRequest, list[tuple[str, list[int]]]]:
    """A first request, and steps that name events it could show."""
    history: History = draw(histories())
    first = draw(requests(history))
    pool = {event.seq: event for event in (*history.recent, *history.others)}
    pool |= {hit.event.seq: hit.event for hit in history.hits}
    shown = [
        seq
        for seq, event in sorted(pool.items())
        if first.include_tool_calls or not is_tool_event(event)
    ]
    if not shown:
        return first, []
    some = st.lists(st.sampled_from(shown), min_size=1, max_size=3)
    step = st.tuples(st.sampled_from(["expand", "expand", "collapse", "focus"]), some)
    return first, draw(st.lists(step, max_size=6))


def taken(at: ContextRequest, step: str, seqs: list[int]) -> ContextRequest:
    match step:
        case "expand":
            pins = with_level(at.pins, seqs, FULL)
            return replace(at, pins=pins, required=frozenset(seqs))
        case "collapse":
            return replace(at, pins=with_level(at.pins, seqs, STUB), required=frozenset())
        case _:
            hits = [hit for hit in at.relevant if hit.event.seq not in seqs]
            return replace(at, relevant=hits, required=frozenset())


@PROFILE
@given(walks())
def test_every_step_fits_and_shows_what_was_asked(
    walk: tuple[ContextRequest, list[tuple[str, list[int]]]],
):
    at, steps = walk
    for step, seqs in steps:
        wanted = taken(at, step, seqs)
        # What focusing takes from the hits must stay at hand, as it does when it was listed.
        wanted = replace(wanted, others=[*at.others, *(hit.event for hit in at.relevant)])
        try:
            context = assemble(wanted)
        except BudgetTooSmallError as error:
            check_minimum(wanted, int(error.metadata["minimum_budget_tokens"]))
            continue
        check(wanted, context)
        at = replace(wanted, pins=kept_pins(wanted.pins, context.items), required=frozenset())


def check_minimum(wanted: ContextRequest, minimum: int) -> None:
    assert minimum > wanted.budget_tokens
    enough = replace(wanted, budget_tokens=minimum)
    check(enough, assemble(enough))
    with pytest.raises(BudgetTooSmallError):
        assemble(replace(wanted, budget_tokens=minimum - 1))


def check(wanted: ContextRequest, context: PreparedContext) -> None:
    check_context(wanted, context)
    assert assemble(wanted) == context
    shown = {item.seq: item.detail for item in context.items}
    assert all(shown[seq] is FULL for seq in wanted.required)
    events = {event.seq: event for event in (*wanted.others, *wanted.recent)}
    for unit in group_units([events[seq] for seq in sorted(events)]):
        levels = {shown.get(event.seq) for event in unit.events if event in unit.events[1:]}
        assert len(levels) <= 1, "a tool pair came apart"
        pins = {wanted.pins.get(event.seq) for event in unit.events}
        if pins == {STUB}:
            assert {shown.get(event.seq) for event in unit.events} <= {STUB, None}


def test_the_latest_pin_counts_and_comes_first():
    pins = with_level(with_level({}, [1, 2, 3], FULL), [2], STUB)
    pins = with_level(pins, [1], FULL)

    assert list(pins.items()) == [(3, FULL), (2, STUB), (1, FULL)]
    assert [pin_of(pins, seqs) for seqs in ([9], [3, 2], [2, 1, 3])] == [
        None,
        pin_of(pins, [2]),
        pin_of(pins, [1]),
    ]


def test_collapsed_events_are_stubs_even_where_all_would_fit():
    context = prepared(request(chat("alpha", "beta", "gamma"), pins={1: STUB, 3: STUB}))

    assert {seq: detail for seq, (_, detail) in places(context).items()} == {
        1: STUB,
        2: FULL,
        3: STUB,
    }


def test_an_expanded_event_is_there_although_hits_and_window_would_take_all():
    events = placed([message(LONG) for _ in range(8)])
    tokens = prepared(request(events, budget_tokens=1_400)).total_tokens
    hits = [Hit(events[1], 0.9), Hit(events[2], 0.8)]

    context = prepared(
        request(events, budget_tokens=1_400, relevant=hits, pins={5: FULL}, required=frozenset({5}))
    )

    assert places(context)[5][1] is FULL
    assert tokens <= 1_400


def test_without_being_required_it_makes_room_for_later_ones():
    events = placed([message(LONG) for _ in range(8)])
    both = {4: FULL, 5: FULL}

    context = prepared(request(events, budget_tokens=900, pins=both, required=frozenset({5})))

    shown = places(context)
    assert (shown[5][1], shown[4][1]) == (FULL, SNIPPET)
    assert kept_pins(both, context.items) == {5: FULL}


def test_changes_are_told_in_the_order_of_the_payload_and_then_what_is_gone():
    before = {"#1": FULL, "#2": STUB, "#3": SNIPPET, "#4": STUB}
    after = {"#2": FULL, "#3": SNIPPET, "#9": STUB}

    assert changes_between(before, after) == (
        DetailChange("#2", STUB, FULL),
        DetailChange("#9", None, STUB),
        DetailChange("#1", FULL, None),
        DetailChange("#4", STUB, None),
    )


def test_what_has_no_handle_has_no_level():
    context = prepared(request(chat("alpha"), current_message="zeta", system_prompt="omega"))

    assert shown_levels(context.items) == {"#1": FULL}
