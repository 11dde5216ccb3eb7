"""What is wrong with a payload is said where it is wrong."""

from __future__ import annotations

import json

import pytest

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import EventType, Role
from annals_context.domain.formats.openai_parse import parse
from annals_context.domain.model import Repair


def call(**members: object) -> dict:
    function = {"name": "search", "arguments": "{}"}
    return {"id": "a", "type": "function", "function": function, **members}


def calls(*entries: object) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": list(entries)}


def function(**members: object) -> dict:
    return call(function={"name": "search", "arguments": "{}", **members})


INVALID = [
    (7, "payload[0]"),
    ({"content": "x"}, "payload[0].role"),
    ({"role": "robot", "content": "x"}, "payload[0].role"),
    ({"role": ["user"], "content": "x"}, "payload[0].role"),
    ({"role": "user"}, "payload[0].content"),
    ({"role": "user", "content": None}, "payload[0].content"),
    ({"role": "user", "content": 5}, "payload[0].content"),
    ({"role": "user", "content": "a\0b"}, "payload[0].content"),
    ({"role": "user", "content": "\ud800"}, "payload[0].content"),
    ({"role": "user", "content": "x" * (1024 * 1024 + 1)}, "payload[0].content"),
    ({"role": "user", "content": ["x"]}, "payload[0].content[0]"),
    ({"role": "user", "content": [{"text": "x"}]}, "payload[0].content[0].type"),
    ({"role": "user", "content": [{"type": "text"}]}, "payload[0].content[0].text"),
    ({"role": "user", "content": "x", "name": 5}, "payload[0].name"),
    ({"role": "user", "content": "x", "name": "n" * 201}, "payload[0].name"),
    ({"role": "user", "content": "x", "extra": "\udc00"}, "payload[0]"),
    ({"role": "user", "content": "x", "extra": ["\0"]}, "payload[0]"),
    ({"role": "user", "content": "x", "extra": "x" * 70_000}, "payload[0]"),
    ({"role": "assistant", "content": "x", "tool_calls": "a"}, "payload[0].tool_calls"),
    *(
        ({"role": "assistant", "content": "x", "tool_calls": wrong}, "payload[0].tool_calls")
        for wrong in ("", 0, {})
    ),
    (calls("a"), "payload[0].tool_calls[0]"),
    (calls(call(), call(type="custom")), "payload[0].tool_calls[1].type"),
    (calls(call(id="")), "payload[0].tool_calls[0].id"),
    (calls(call(id=None)), "payload[0].tool_calls[0].id"),
    (calls(call(id="i" * 257)), "payload[0].tool_calls[0].id"),
    (calls(call(function=None)), "payload[0].tool_calls[0].function"),
    (calls(function(name="")), "payload[0].tool_calls[0].function.name"),
    (calls(function(arguments=None)), "payload[0].tool_calls[0].function.arguments"),
    (calls(function(arguments={})), "payload[0].tool_calls[0].function.arguments"),
    (calls(function(arguments='{"a":')), "payload[0].tool_calls[0].function.arguments"),
    (calls(function(arguments="NaN")), "payload[0].tool_calls[0].function.arguments"),
    (calls(function(arguments="[" * 100_000)), "payload[0].tool_calls[0].function.arguments"),
    ({"role": "tool", "content": "x"}, "payload[0].tool_call_id"),
    ({"role": "tool", "tool_call_id": "", "content": "x"}, "payload[0].tool_call_id"),
]


@pytest.mark.parametrize(("message", "field"), INVALID)
def test_the_path_of_what_is_wrong_is_named(message: object, field: str):
    with pytest.raises(FieldInvalidError) as raised:
        parse(json.dumps([message]))
    assert raised.value.metadata["field"] == field


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ("", "payload"),
        ("{", "payload"),
        ("5", "payload"),
        ('"x"', "payload"),
        ("null", "payload"),
        ("[NaN]", "payload"),
        ("[" * 100_000, "payload"),
        ('[{"role":"user","content":' + "9" * 10_000 + "}]", "payload"),
        ("{}", "payload.messages"),
        ('{"messages":{}}', "payload.messages"),
        ('{"messages":[{"role":"x"}]}', "payload.messages[0].role"),
        ('[{"role":"user","content":"x","extra":1e999}]', "payload[0]"),
    ],
)
def test_a_payload_that_is_no_array_of_messages_is_refused(payload: str, field: str):
    with pytest.raises(FieldInvalidError) as raised:
        parse(payload)
    assert raised.value.metadata["field"] == field


def test_nothing_is_a_conversation_too():
    assert parse("[]").events == ()


def test_an_object_with_messages_is_taken():
    parsed = parse('{"model":"gpt-4o","messages":[{"role":"user","name":"Ann","content":"hi"}]}')
    event = parsed.events[0]
    assert (event.type, event.role, event.author_name) == (EventType.MESSAGE, Role.USER, "Ann")
    assert event.metadata == {}


def test_a_result_without_its_call_becomes_a_message_and_is_reported():
    parsed = parse('[{"role":"tool","tool_call_id":"a","content":"lost"}]')
    assert parsed.repairs == (Repair("tool_call_missing", "a"),)
    assert (parsed.events[0].type, parsed.events[0].role) == (EventType.MESSAGE, Role.TOOL)
    assert parsed.events[0].content == "lost"


def test_ids_that_repeat_are_made_unique_and_results_follow():
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    taken = calls(call(id="a~2"))
    parsed = parse(json.dumps([calls(call()), result, calls(call()), result, taken]))
    assert [event.tool_call_id for event in parsed.events] == ["a", "a", "a~3", "a~3", "a~2"]


def test_a_result_takes_the_name_of_its_call():
    parsed = parse(
        json.dumps([calls(call()), {"role": "tool", "tool_call_id": "a", "content": "x"}])
    )
    assert parsed.events[1].tool_name == "search"
