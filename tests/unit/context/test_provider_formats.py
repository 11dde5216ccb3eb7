"""Canonical events to the formats of Anthropic, Google and OpenAI's responses, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from tests.unit.context.histories import History, histories, message, tool_call, tool_result
from tests.unit.context.profiles import PROFILE
from tests.unit.context.provider_checks import check_anthropic, check_gemini, check_responses

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats import (
    anthropic_messages,
    anthropic_parse,
    gemini_contents,
    gemini_parse,
    openai_responses,
    openai_responses_parse,
)
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.rendering import MISSING_RESULT, Rendered
from annals_context.domain.model import Repair


class Format(NamedTuple):
    render: Callable[[Sequence[Event]], Rendered]
    parse: Callable[[str], Parsed]
    check: Callable[[str], object]


ANTHROPIC = Format(anthropic_messages.render, anthropic_parse.parse, check_anthropic)
GEMINI = Format(gemini_contents.render, gemini_parse.parse, check_gemini)
RESPONSES = Format(openai_responses.render, openai_responses_parse.parse, check_responses)
FORMATS = pytest.mark.parametrize(
    "form",
    [
        pytest.param(ANTHROPIC, id="anthropic"),
        pytest.param(GEMINI, id="gemini"),
        pytest.param(RESPONSES, id="responses"),
    ],
)
ERROR = Event(type=EventType.ERROR, error_type="rate_limit", error_message="slow down")


def anthropic(*events: Event) -> dict:
    return check_anthropic(anthropic_messages.render(events).payload)


def gemini(*events: Event) -> dict:
    return check_gemini(gemini_contents.render(events).payload)


def meaning(event: Event) -> tuple[object, ...]:
    """Return what an event says, arguments as values."""
    arguments = json.loads(event.tool_input or "{}")
    words = (event.content, event.tool_result, event.is_error)
    return event.type, event.role, event.tool_call_id, event.tool_name, arguments, *words


@FORMATS
@PROFILE
@given(history=histories())
def test_every_history_is_a_valid_payload(form: Format, history: History):
    rendered = form.render(history.events)
    form.check(rendered.payload)
    assert form.render(history.events) == rendered


@FORMATS
@PROFILE
@given(history=histories())
def test_a_rendered_payload_is_parsed_and_rendered_to_itself(form: Format, history: History):
    payload = form.render(history.events).payload
    parsed = form.parse(payload)
    assert parsed.repairs == ()
    again = form.render(parsed.events)
    assert json.loads(again.payload) == json.loads(payload)
    assert again.repairs == ()


@FORMATS
def test_a_whole_conversation_keeps_its_meaning(form: Format):
    events = (
        message("Be brief.", Role.SYSTEM),
        message("What flies tonight?"),
        message("Let me look.", Role.ASSISTANT),
        tool_call("a", '{"q":1.5}'),
        tool_call("b", '{"q":[]}', "get_user"),
        tool_result("a", "owls"),
        tool_result("b", '{"name":"Ann"}', "get_user"),
        message("Owls.", Role.ASSISTANT),
    )
    assert [*map(meaning, form.parse(form.render(events).payload).events)] == [
        *map(meaning, events)
    ]


def test_anthropic_has_prompts_apart_and_results_first():
    assert anthropic(
        message("Be brief.", Role.SYSTEM),
        message("hi"),
        message("Let me look.", Role.ASSISTANT),
        tool_call("a", '{"q":1}'),
        message("Hurry!"),
        tool_result("a", "one"),
    ) == {
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "a", "name": "search", "input": {"q": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "text", "text": "Hurry!"},
                ],
            },
        ],
    }


def test_gemini_has_prompts_apart_and_results_in_the_order_of_calls():
    request = gemini(
        message("Be brief.", Role.SYSTEM),
        message("hi"),
        tool_call("a"),
        tool_call("b"),
        replace(tool_result("b", "no"), is_error=True),
        tool_result("a", "one"),
    )
    assert request["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert request["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "a", "name": "search", "args": {}}},
                {"functionCall": {"id": "b", "name": "search", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "a",
                        "name": "search",
                        "response": {"result": "one"},
                    }
                },
                {"functionResponse": {"id": "b", "name": "search", "response": {"error": "no"}}},
            ],
        },
    ]


@FORMATS
def test_a_call_without_a_result_gets_a_placeholder_and_is_reported(form: Format):
    rendered = form.render([message("hi"), replace(tool_call("a"), event_id="e1"), message("?")])
    assert MISSING_RESULT in rendered.payload
    assert rendered.repairs == (Repair("tool_result_missing", "a", "e1"),)


@FORMATS
def test_a_result_without_its_call_becomes_text_and_is_reported(form: Format):
    rendered = form.render([replace(tool_result("a", "lost"), event_id="e1")])
    assert "[result of search, call a]: lost" in rendered.payload
    assert rendered.repairs == (Repair("tool_call_missing", "a", "e1"),)


def test_speakers_alternate():
    request = anthropic(message("a"), message("b"), message("c", Role.ASSISTANT), ERROR)
    assert [m["role"] for m in request["messages"]] == ["user", "assistant", "user"]
    assert request["messages"][0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert request["messages"][2]["content"] == "[error]: rate_limit: slow down"


def test_an_assistant_that_begins_is_given_an_opening():
    rendered = anthropic_messages.render([message("Hello!", Role.ASSISTANT)])
    assert [m["role"] for m in check_anthropic(rendered.payload)["messages"]] == [
        "user",
        "assistant",
    ]
    assert rendered.repairs == (Repair("user_message_missing", "", ""),)


def test_blank_words_are_left_out_or_named():
    blank = replace(message(" \n"), event_id="e1")
    rendered = anthropic_messages.render([blank])
    assert check_anthropic(rendered.payload)["messages"][0]["content"] == "(empty message)"
    assert rendered.repairs == (Repair("message_empty", "", "e1"),)
    assert anthropic(message("hi"), blank)["messages"] == [{"role": "user", "content": "hi"}]


def test_foreign_ids_and_names_are_written_with_what_is_allowed():
    call = tool_call("functions.search:0", tool_name="web.search now")
    rendered = anthropic_messages.render([message("hi"), call, tool_result("functions.search:0")])
    [use] = check_anthropic(rendered.payload)["messages"][1]["content"]
    assert use["id"].startswith("functions_search_0_")
    assert use["name"].startswith("web_search_now_")
    assert rendered.repairs == (Repair("tool_name_changed", "functions.search:0", ""),)


def test_ids_used_again_are_told_apart_over_the_whole_payload():
    rounds = [message("hi"), tool_call("a"), tool_result("a"), message("on"), tool_call("a")]
    uses = [
        block["id"]
        for m in anthropic(*rounds, tool_result("a"))["messages"]
        if m["role"] == "assistant"
        for block in m["content"]
    ]
    assert uses == ["a", "a-2"]


@pytest.mark.parametrize("arguments", ["[1]", "not json", '{"a":"\\ud800"}', "1e999", "[" * 9_999])
def test_arguments_that_are_no_object_are_wrapped(arguments: str):
    [use] = anthropic(message("hi"), tool_call("a", arguments))["messages"][1]["content"]
    assert use["input"] == {"value": [1] if arguments == "[1]" else arguments}


def test_a_name_is_put_before_the_words():
    assert anthropic(message("hi", author_name="Ann"))["messages"][0]["content"] == "Ann: hi"


def test_gemini_calls_without_ids_are_paired_by_name():
    payload = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"function_call": {"name": "search", "args": {}}},
                {"function_call": {"name": "get_user"}},
            ],
        },
        {
            "role": "function",
            "parts": [
                {"function_response": {"name": "get_user", "response": {"output": "Ann"}}},
                {"function_response": {"name": "search", "response": {"result": "owls"}}},
            ],
        },
    ]
    events = gemini_parse.parse(json.dumps(payload)).events
    results = {event.tool_call_id: event.tool_result for event in events[3:]}
    assert results == {events[1].tool_call_id: "owls", events[2].tool_call_id: "Ann"}


def test_reasoning_at_the_very_end_is_reported():
    payload = [{"role": "user", "content": "hi"}, {"type": "reasoning", "id": "r1", "summary": []}]
    parsed = openai_responses_parse.parse(json.dumps(payload))
    assert parsed.repairs == (Repair("item_left_out", "r1", ""),)
