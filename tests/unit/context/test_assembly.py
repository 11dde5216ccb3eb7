"""What a context is made of, one rule at a time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.context.checks import TURNS, check_context
from tests.unit.context.counters import INEXACT, O200K
from tests.unit.context.histories import message, placed, tool_call, tool_result

from annals_common.errors import BudgetTooSmallError
from annals_context.domain.assembly import CURRENT_STUB, assemble
from annals_context.domain.events import Event, Role
from annals_context.domain.formats.lines import NO_MESSAGES
from annals_context.domain.model import (
    ContextRequest,
    DetailLevel,
    Hit,
    PayloadFormat,
    PreparedContext,
    Section,
    StrategyName,
)

LONG = "The quick brown fox jumps over the lazy dog. " * 60
FORMATS = pytest.mark.parametrize("payload_format", PayloadFormat)


def request(events: list[Event], **members) -> ContextRequest:
    """Ask for the last two events as the window and every other as the index."""
    defaults = {
        "counter": O200K,
        "budget_tokens": 1_000,
        "total_events": len(events),
        "recent": events[-2:],
        "others": events[:-2],
        "strategy": StrategyName.SNIPPET,
    }
    return ContextRequest(**{**defaults, **members})


def prepared(wanted: ContextRequest) -> PreparedContext:
    context = assemble(wanted)
    check_context(wanted, context)
    return context


def chat(*contents: str) -> list[Event]:
    roles = (Role.USER, Role.ASSISTANT)
    return placed([message(text, roles[i % 2]) for i, text in enumerate(contents)])


def places(context: PreparedContext) -> dict[int, tuple[Section, DetailLevel]]:
    return {item.seq: (item.section, item.detail) for item in context.items}


@FORMATS
def test_nothing_at_all_is_not_an_empty_payload(payload_format: PayloadFormat):
    context = prepared(request([], payload_format=payload_format))
    assert NO_MESSAGES in context.payload
    assert context.items == ()


@FORMATS
def test_the_order_is_system_history_window_current(payload_format: PayloadFormat):
    events = chat("alpha", "beta", "gamma", "delta", "epsilon")
    context = prepared(
        request(
            events,
            payload_format=payload_format,
            system_prompt="omega",
            current_message="zeta",
            relevant=[Hit(events[1], 0.9)],
        )
    )
    words = ["omega", "alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    assert sorted(words, key=context.payload.index) == words
    assert [item.section for item in context.items] == [
        Section.SYSTEM,
        Section.INDEX,
        Section.RELEVANT,
        Section.INDEX,
        Section.RECENT,
        Section.RECENT,
        Section.CURRENT,
    ]


def test_a_line_of_history_has_its_handle_its_day_and_its_speaker():
    events = chat("alpha", LONG, "gamma", "delta")
    content = json.loads(prepared(request(events)).payload)[0]["content"]
    heading, first, second = content.split("\n")
    assert heading == "Historical Matches (retrieve with get_message_by_id):"
    assert first == "#1 [2024-10-15] user: alpha"
    assert second.startswith('#2 assistant: "The quick brown fox')
    assert second.endswith('…"')


def test_items_say_how_to_retrieve_them():
    item = prepared(request(chat("alpha", "beta", "gamma"))).items[0]
    assert (item.handle, item.retrieve_with) == ("#1", 'get_message_by_id("#1")')


def test_an_event_asked_for_twice_is_there_once_and_recent_wins():
    events = chat("alpha", "beta", "gamma")
    hits = [Hit(events[2], 0.5), Hit(events[0], 0.4), Hit(events[0], 0.7)]
    context = prepared(request(events, relevant=hits, others=events))
    assert places(context) == {
        1: (Section.RELEVANT, DetailLevel.FULL),
        2: (Section.RECENT, DetailLevel.FULL),
        3: (Section.RECENT, DetailLevel.FULL),
    }
    assert [item.score for item in context.items] == [0.7, 0.0, 0.5]


def test_a_short_relevant_event_is_whole_and_a_long_one_begins_at_its_best_chunk():
    events = chat(f"{LONG} the needle is here", "beta", "gamma", "delta")
    hits = [Hit(events[0], 0.9, LONG.index("dog. ") + len(LONG) - 44), Hit(events[1], 0.1)]
    context = prepared(request(events, relevant=hits, budget_tokens=300))
    assert places(context)[1] == (Section.RELEVANT, DetailLevel.SNIPPET)
    assert places(context)[2] == (Section.RELEVANT, DetailLevel.FULL)
    assert "the needle is here" in context.payload


def test_the_window_takes_half_and_leaves_the_rest_to_what_is_relevant():
    events = chat(*[f"{number} " + LONG[:400] for number in range(20)])
    hits = [Hit(event, 1 - event.seq / 100) for event in events[:10]]
    context = prepared(
        request(events, recent=events[10:], relevant=hits, others=[], current_message="go on")
    )
    spent = {entry.section: entry.tokens for entry in context.ledger}
    assert spent[Section.RECENT] <= 500
    assert spent[Section.RELEVANT] > 350


@pytest.mark.parametrize("has_hits", [True, False])
def test_a_share_nobody_uses_flows_to_the_other(has_hits: bool):
    events = chat(*[f"{number} " + LONG[:400] for number in range(20)])
    hits = [Hit(event, 0.5) for event in events[:10]] if has_hits else []
    recent = events[-1:] if has_hits else events[10:]
    context = prepared(
        request(events, recent=recent, relevant=hits, others=[], current_message="go on")
    )
    spent = {entry.section: entry.tokens for entry in context.ledger}
    assert spent[Section.RELEVANT if has_hits else Section.RECENT] > 700


def test_a_small_conversation_that_fits_is_one_window_of_whole_messages():
    events = chat("alpha", "beta", "gamma", "delta")
    context = prepared(request(events, strategy=StrategyName.ADAPTIVE))
    assert context.strategy is StrategyName.FULL
    assert [m["content"] for m in json.loads(context.payload)] == [e.content for e in events]


def test_adaptive_is_snippet_above_fifty_events():
    events = chat(*["word"] * 51)
    context = prepared(request(events, strategy=StrategyName.ADAPTIVE))
    assert context.strategy is StrategyName.SNIPPET
    assert prepared(request(events[:50], strategy=StrategyName.ADAPTIVE)).strategy == "full"


def test_full_degrades_what_does_not_fit():
    events = chat(LONG, LONG, LONG, "short")
    context = prepared(request(events, strategy=StrategyName.FULL))
    assert {detail for _, detail in places(context).values()} == set(DetailLevel) - {
        DetailLevel.STUB
    }


@FORMATS
@pytest.mark.parametrize("budget", [60, 100, 150, 300, 3_000])
def test_calls_and_results_stay_together_or_leave_together(
    payload_format: PayloadFormat, budget: int
):
    talk = [tool_call("a"), tool_call("b"), tool_result("a", LONG), tool_result("b", "short")]
    events = placed([message("q"), *talk, message("a", Role.ASSISTANT), message("more?")])
    for recent, hits in [(events, []), (events[4:], []), (events[6:], [Hit(events[4], 1.0)])]:
        context = prepared(
            request(
                events,
                recent=recent,
                relevant=hits,
                budget_tokens=budget,
                payload_format=payload_format,
            )
        )
        shown = places(context)
        assert len({seq in shown for seq in (2, 3, 4, 5)}) == 1
        assert len({shown.get(seq) for seq in (2, 3, 4, 5)}) == 1
        opening = {"user_message_missing"} if payload_format in TURNS else set()
        assert {repair.kind for repair in context.repairs} <= opening


def test_a_group_too_large_is_one_note_with_a_line_for_each_event():
    events = placed([message("q"), tool_call("a"), tool_result("a", LONG)])
    context = prepared(request(events, recent=events, budget_tokens=150))
    note = json.loads(context.payload)[-1]
    assert note["role"] == "system"
    assert note["content"].startswith('#2 assistant calls search: "{}"\n#3 search returns: "The')


def test_an_unanswered_call_is_mended_and_reported():
    events = placed([message("q"), tool_call("a")])
    context = prepared(request(events))
    assert [(r.kind, r.event_id) for r in context.repairs] == [("tool_result_missing", "event-2")]
    as_text = prepared(request(events, payload_format=PayloadFormat.TEXT))
    assert as_text.repairs == ()


def test_tool_calls_can_be_left_out():
    events = placed([message("q"), tool_call("a"), tool_result("a"), message("a", Role.ASSISTANT)])
    context = prepared(request(events, recent=events, include_tool_calls=False))
    assert set(places(context)) == {1, 4}
    assert context.omitted_events == 2


def test_the_newest_message_of_the_user_is_there_however_far_back():
    events = placed([message("what now?"), *[message(LONG, Role.ASSISTANT)] * 8])
    context = prepared(request(events, budget_tokens=60))
    assert places(context)[1] == (Section.RECENT, DetailLevel.FULL)


@FORMATS
def test_a_current_message_too_long_is_cut_to_what_fits(payload_format: PayloadFormat):
    context = prepared(
        request([], current_message=LONG, budget_tokens=300, payload_format=payload_format)
    )
    assert context.items[-1].detail is DetailLevel.SNIPPET
    assert context.total_tokens > 150


def test_a_current_message_that_hardly_fits_is_a_stub():
    wanted = request([], current_message="漢" * 5_000)
    with pytest.raises(BudgetTooSmallError) as raised:
        assemble(replace(wanted, budget_tokens=1))
    least = int(raised.value.metadata["minimum_budget_tokens"])
    assert CURRENT_STUB in prepared(replace(wanted, budget_tokens=least)).payload


def test_the_system_prompt_is_never_cut():
    events = chat("alpha")
    with pytest.raises(BudgetTooSmallError) as raised:
        assemble(request(events, system_prompt=LONG, budget_tokens=200))
    assert int(raised.value.metadata["minimum_budget_tokens"]) > O200K.count(LONG)


@pytest.mark.parametrize(("budget", "margin"), [(1_000, 90), (101, 1), (109, 1), (111, 2)])
def test_a_margin_is_kept_when_counting_is_not_exact(budget: int, margin: int):
    wanted = request(
        chat("a", "b"), counter=INEXACT, budget_tokens=budget, response_reserve_tokens=100
    )
    try:
        assert prepared(wanted).counter.margin_tokens == margin
    except BudgetTooSmallError:
        assert margin < 3


def test_the_version_changes_with_the_payload_alone():
    events = chat("alpha", "beta")
    first = prepared(request(events))
    assert prepared(request(events, budget_tokens=2_000)).context_version == first.context_version
    edited = [events[0], replace(events[1], content="gamma")]
    assert prepared(request(edited)).context_version != first.context_version


def test_the_order_of_what_is_handed_in_does_not_matter():
    events = chat(*[f"event {number}" for number in range(30)])
    hits = [Hit(event, 0.5) for event in events[5:12]]
    one = request(events, relevant=hits, budget_tokens=200)
    other = replace(one, relevant=hits[::-1], others=events[:-2][::-1], recent=events[-2:][::-1])
    assert assemble(one) == assemble(other)


@pytest.mark.parametrize("giant", ["a" * 1_000_000, "lorem ipsum " * 80_000, " " * 1_000_000])
def test_a_giant_is_not_counted_to_its_end(giant: str):
    counted = []

    class Watching:
        encoding = "o200k_base"
        exact = True

        def count(self, text: str) -> int:
            counted.append(len(text))
            return O200K.count(text)

    events = chat("alpha", giant, "beta")
    context = prepared(request(events, recent=events, counter=Watching()))
    assert places(context)[2] == (Section.RECENT, DetailLevel.SNIPPET)
    prepared(request([], current_message=giant, counter=Watching()))
    assert max(counted) < 50_000
