"""Contexts as each provider wants them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.context.checks import check_context
from tests.unit.context.counters import O200K
from tests.unit.context.histories import message, placed, tool_call, tool_result
from tests.unit.context.test_assembly import FORMATS, LONG, chat, prepared, request

from annals_context.domain.events import Event, Role
from annals_context.domain.formats import anthropic_parse
from annals_context.domain.formats.rendering import MISSING_RESULT
from annals_context.domain.model import (
    DetailLevel,
    PayloadFormat,
    PreparedContext,
    Repair,
    Section,
)
from annals_context.domain.snippets import ELLIPSIS

ANTHROPIC = PayloadFormat.ANTHROPIC_MESSAGES
GEMINI = PayloadFormat.GEMINI_CONTENTS
RESPONSES = PayloadFormat.OPENAI_RESPONSES
TURNS = pytest.mark.parametrize("payload_format", [ANTHROPIC, GEMINI])
BLOCK = "Historical Matches (retrieve with get_message_by_id):\n#1 [2024-10-15] user: alpha"


def context(events: list[Event], payload_format: PayloadFormat, **members) -> PreparedContext:
    return prepared(request(events, payload_format=payload_format, **members))


def payload(events: list[Event], payload_format: PayloadFormat, **members):
    return json.loads(context(events, payload_format, **members).payload)


def test_anthropic_has_the_prompt_and_the_history_apart():
    events = chat("alpha", "beta", "gamma")
    assert payload(
        events, ANTHROPIC, recent=events[1:], system_prompt="omega", current_message="zeta"
    ) == {
        "system": [{"type": "text", "text": "omega"}, {"type": "text", "text": BLOCK}],
        "messages": [
            {"role": "user", "content": ELLIPSIS},
            {"role": "assistant", "content": "beta"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "gamma"}, {"type": "text", "text": "zeta"}],
            },
        ],
    }


def test_gemini_has_the_prompt_and_the_history_apart():
    events = chat("alpha", "beta", "gamma")
    assert payload(
        events, GEMINI, recent=events[1:], system_prompt="omega", current_message="zeta"
    ) == {
        "systemInstruction": {"parts": [{"text": "omega"}, {"text": BLOCK}]},
        "contents": [
            {"role": "user", "parts": [{"text": ELLIPSIS}]},
            {"role": "model", "parts": [{"text": "beta"}]},
            {"role": "user", "parts": [{"text": "gamma"}, {"text": "zeta"}]},
        ],
    }


def test_responses_have_the_prompt_and_the_history_first():
    events = chat("alpha", "beta", "gamma")
    items = payload(
        events, RESPONSES, recent=events[1:], system_prompt="omega", current_message="zeta"
    )
    assert [(item["role"], item["content"]) for item in items] == [
        ("system", "omega"),
        ("system", BLOCK),
        ("assistant", "beta"),
        ("user", "gamma"),
        ("user", "zeta"),
    ]


@TURNS
def test_a_prompt_alone_is_a_request_that_is_taken(payload_format: PayloadFormat):
    made = context([], payload_format, system_prompt="omega")
    assert [item.section for item in made.items] == [Section.SYSTEM]
    assert made.repairs == (Repair("user_message_missing", ""),)


@TURNS
def test_what_is_mended_is_reported(payload_format: PayloadFormat):
    events = placed(
        [
            message(" \n"),
            tool_call("a", tool_name="get user"),
            message("and?"),
            tool_result("x", "lost"),
        ]
    )
    made = context(events, payload_format, recent=events, others=[])
    assert [(repair.kind, repair.event_id) for repair in made.repairs] == [
        ("message_empty", "event-1"),
        ("tool_result_missing", "event-2"),
        ("tool_call_missing", "event-4"),
        ("tool_name_changed", "event-2"),
    ]
    assert MISSING_RESULT in made.payload


@FORMATS
def test_what_is_not_shown_whole_keeps_its_speaker_and_its_handle(payload_format: PayloadFormat):
    events = placed([message("q"), message(LONG, Role.ASSISTANT), message("more?")])
    made = context(events, payload_format, recent=events, others=[], budget_tokens=150)
    assert made.items[1].detail is DetailLevel.SNIPPET
    assert "#2" in made.payload
    assert made.payload.count("assistant") + made.payload.count('"model"') == 1


@pytest.mark.parametrize("payload_format", [ANTHROPIC, GEMINI, RESPONSES])
def test_ids_used_again_are_told_apart_over_the_whole_context(payload_format: PayloadFormat):
    rounds = [tool_call("a"), tool_result("a"), message("on"), tool_call("a"), tool_result("a")]
    events = placed([message("hi"), *rounds])
    made = context(events, payload_format, recent=events, others=[])
    assert made.payload.count('"a-2"') == 2
    assert made.repairs == ()


def test_thoughts_stay_and_marks_of_the_cache_do_not():
    marked = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s1gned"}
    call = {"type": "tool_use", "id": "a", "name": "search", "input": {"cache_control": 1}}
    found = [{"type": "text", "text": "owls", **marked}]
    answer = {"type": "tool_result", "tool_use_id": "a", "content": found, **marked}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi", **marked}]},
        {"role": "assistant", "content": [thought, {**call, **marked}]},
        {"role": "user", "content": [answer]},
    ]
    events = placed([*anthropic_parse.parse(json.dumps(messages)).events])
    assert payload(events, ANTHROPIC, recent=events)["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thought, call]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "owls"}],
                }
            ],
        },
    ]
    for other in set(PayloadFormat) - {ANTHROPIC}:
        assert "s1gned" not in context(events, other, recent=events).payload


@FORMATS
@pytest.mark.parametrize("speakers", [(Role.USER,), (Role.USER, Role.USER, Role.ASSISTANT)])
def test_budgets_are_used_whoever_speaks_in_a_row(
    payload_format: PayloadFormat, speakers: tuple[Role, ...]
):
    said = [message(f"{n} {LONG[:120]}", speakers[n % len(speakers)]) for n in range(200)]
    events = placed(said)
    wanted = request(
        events,
        recent=events,
        others=[],
        payload_format=payload_format,
        budget_tokens=2_000,
        current_message="go on",
    )
    made = prepared(wanted)
    assert made.total_tokens >= 0.8 * wanted.budget_tokens
    check_context(replace(wanted, counter=O200K), made)
