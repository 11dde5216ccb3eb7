"""Canonical events to OpenAI's messages and back, exactly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from tests.unit.context.checks import check_openai
from tests.unit.context.histories import (
    History,
    histories,
    message,
    placed,
    tool_call,
    tool_result,
)
from tests.unit.context.profiles import PROFILE

from annals_context.domain.events import Event, EventType, Role
from annals_context.domain.formats.openai_chat import render
from annals_context.domain.formats.openai_parse import parse
from annals_context.domain.formats.rendering import MISSING_RESULT
from annals_context.domain.model import Repair


def rendered(*events: Event) -> list[dict]:
    return check_openai(render(events).payload)


def call_of(tool_call_id: str, arguments: str = "{}") -> dict:
    return {
        "id": tool_call_id,
        "type": "function",
        "function": {"name": "search", "arguments": arguments},
    }


def test_what_the_assistant_says_and_calls_in_one_turn_is_one_message():
    assert rendered(
        message("Let me look.", Role.ASSISTANT),
        tool_call("a", '{ "q" : 1.0 }'),
        tool_call("b"),
        tool_result("b", "two"),
        tool_result("a", "one"),
    ) == [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [call_of("a", '{ "q" : 1.0 }'), call_of("b")],
        },
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
    ]


def test_a_result_follows_its_call_whatever_came_between():
    roles = [m["role"] for m in rendered(tool_call("a"), message("Hurry!"), tool_result("a"))]
    assert roles == ["assistant", "tool", "user"]


def test_a_call_without_a_result_gets_a_placeholder_and_is_reported():
    result = render([replace(tool_call("a"), event_id="e1"), message("Well?")])
    assert json.loads(result.payload)[1]["content"] == MISSING_RESULT
    assert result.repairs == (Repair("tool_result_missing", "a", "e1"),)


def test_a_result_without_its_call_becomes_text_and_is_reported():
    result = render([replace(tool_result("a", "lost"), event_id="e1")])
    assert json.loads(result.payload) == [
        {"role": "user", "content": "[result of search, call a]: lost"}
    ]
    assert result.repairs == (Repair("tool_call_missing", "a", "e1"),)


def test_a_second_result_of_one_call_becomes_text():
    result = render([tool_call("a"), tool_result("a", "1"), tool_result("a", "2")])
    assert [m["role"] for m in json.loads(result.payload)] == ["assistant", "tool", "user"]
    assert [repair.kind for repair in result.repairs] == ["tool_call_missing"]


def test_calls_of_one_message_that_share_an_id_get_distinct_ones():
    messages = rendered(
        tool_call("a"), tool_call("a"), tool_result("a", "1"), tool_result("a", "2")
    )
    assert [call["id"] for call in messages[0]["tool_calls"]] == ["a", "a-2"]
    assert [(m["tool_call_id"], m["content"]) for m in messages[1:]] == [("a", "1"), ("a-2", "2")]


def test_an_id_used_again_later_pairs_with_the_later_call():
    first = [tool_call("a"), message("Stop."), tool_call("a"), tool_result("a", "second")]
    result = render(first)
    contents = [m["content"] for m in check_openai(result.payload) if m["role"] == "tool"]
    assert contents == [MISSING_RESULT, "second"]


def test_calls_of_two_responses_are_two_messages():
    events = [
        replace(tool_call("a"), provider_response_id="r1"),
        replace(tool_call("b"), provider_response_id="r2"),
        tool_result("a"),
        tool_result("b"),
    ]
    assert [m["role"] for m in rendered(*events)] == ["assistant", "tool"] * 2


def test_calls_with_a_gap_between_them_are_two_messages():
    events = placed([tool_call("a"), message("gone"), tool_call("b")])
    assert len(render([events[0], events[2]]).repairs) == 2
    assert [m["role"] for m in rendered(events[0], events[2])] == ["assistant", "tool"] * 2


@pytest.mark.parametrize("name", ["Ann", "名前", "a.b@c"])
def test_a_name_the_format_takes_is_a_member(name: str):
    assert rendered(message("hi", author_name=name)) == [
        {"role": "user", "name": name, "content": "hi"}
    ]


@pytest.mark.parametrize("name", ["Jean Luc", "a<b", "a|b", "a/b", "a\\b", "x" * 65])
def test_a_name_the_format_refuses_is_put_before_the_text(name: str):
    assert rendered(message("hi", author_name=name)) == [{"role": "user", "content": f"{name}: hi"}]


def test_notes_and_errors_are_messages_of_role_system():
    note = Event(type=EventType.SYSTEM, content="truncated")
    error = Event(type=EventType.ERROR, error_type="rate_limit", error_message="slow down")
    assert rendered(note, error) == [
        {"role": "system", "content": "truncated"},
        {"role": "system", "content": "rate_limit: slow down"},
    ]


def test_a_failed_result_says_so():
    failed = replace(tool_result("a", "no seat"), is_error=True)
    assert rendered(tool_call("a"), failed)[1]["content"] == "Error: no seat"


def test_empty_arguments_are_an_empty_object():
    assert rendered(tool_call("a", ""))[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_members_an_event_has_no_place_for_survive_the_round_trip():
    messages = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            ],
        },
        {"role": "assistant", "content": None, "refusal": "No.", "annotations": [1, 2.5]},
        {"role": "assistant", "content": None, "tool_calls": [call_of("a") | {"index": 0}]},
        {"role": "tool", "tool_call_id": "a", "name": "search", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call_of("a")]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "y"}]},
    ]
    parsed = parse(json.dumps(messages))
    assert json.loads(render(parsed.events).payload) == messages
    assert parsed.events[1].content == "What is this?"


def test_parts_are_not_restored_over_an_edited_text():
    messages = [{"role": "user", "content": [{"type": "text", "text": "old"}]}]
    edited = replace(parse(json.dumps(messages)).events[0], content="new")
    assert rendered(edited) == [{"role": "user", "content": "new"}]


@pytest.mark.parametrize("junk", ["", "[", "[]", "7", "[" * 100_000, '{"message":3}', 5, None])
def test_metadata_of_others_does_no_harm(junk: object):
    event = replace(message("hi"), metadata={"openai_chat": junk})
    assert rendered(event) == [{"role": "user", "content": "hi"}]


@PROFILE
@given(histories())
def test_every_history_is_a_valid_payload(history: History):
    first = render(history.events)
    if not history.events:
        assert first.payload == "[]"
        return
    check_openai(first.payload)
    assert render(history.events) == first


@PROFILE
@given(histories())
def test_a_rendered_payload_is_parsed_and_rendered_to_the_same_messages(history: History):
    payload = render(history.events).payload
    parsed = parse(payload)
    assert parsed.repairs == ()
    assert json.loads(render(parsed.events).payload) == json.loads(payload)


@PROFILE
@given(histories())
def test_arguments_survive_byte_for_byte(history: History):
    given_inputs = sorted(e.tool_input or "{}" for e in history.events if e.type == "tool_call")
    parsed = parse(render(history.events).payload)
    assert sorted(e.tool_input for e in parsed.events if e.type == "tool_call") == given_inputs
