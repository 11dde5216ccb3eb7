"""What is wrong with a provider's payload is said where it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import EventType, Role
from annals_context.domain.formats import (
    anthropic_parse,
    gemini_parse,
    openai_parse,
    openai_responses_parse,
)
from annals_context.domain.formats.calls import OpenCalls
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.values import MAX_NESTING_LEVELS
from annals_context.domain.model import Repair

USE = {"type": "tool_use", "id": "a", "name": "search", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
ANTHROPIC = [
    ({"messages": 7}, "payload.messages"),
    ({}, "payload.messages"),
    ({"messages": [], "system": 7}, "payload.system"),
    ([7], "payload[0]"),
    ([{"content": "x"}], "payload[0].role"),
    ([{"role": "system", "content": "x"}], "payload[0].role"),
    ([{"role": "user"}], "payload[0].content"),
    ([{"role": "user", "content": ["x"]}], "payload[0].content[0]"),
    ([{"role": "user", "content": [{"text": "x"}]}], "payload[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "text"}]}], "payload[0].content[0].text"),
    ([{"role": "user", "content": [USE]}], "payload[0].content[0].type"),
    ([{"role": "assistant", "content": [RESULT]}], "payload[0].content[0].type"),
    ([{"role": "assistant", "content": [USE | {"id": ""}]}], "payload[0].content[0].id"),
    ([{"role": "assistant", "content": [USE | {"name": 7}]}], "payload[0].content[0].name"),
    ([{"role": "assistant", "content": [USE | {"input": []}]}], "payload[0].content[0].input"),
    (
        [{"role": "assistant", "content": [USE | {"input": {"a": "\ud800"}}]}],
        "payload[0].content[0].input",
    ),
    (
        [{"role": "user", "content": [RESULT | {"tool_use_id": 7}]}],
        "payload[0].content[0].tool_use_id",
    ),
    ([{"role": "user", "content": [RESULT | {"content": 7}]}], "payload[0].content[0].content"),
    ([{"role": "user", "content": [RESULT | {"content": 0}]}], "payload[0].content[0].content"),
    ([{"role": "user", "content": [RESULT | {"is_error": 1}]}], "payload[0].content[0].is_error"),
    ([{"role": "user", "content": [{"type": "image"}]}], "payload[0].content[0].source"),
]
ANSWER = {"id": "a", "name": "s", "response": {"result": "x"}}
CALL = {"functionCall": {"name": "search"}}
GEMINI = [
    ({"contents": 7}, "payload.contents"),
    ({"contents": [], "systemInstruction": "x"}, "payload.systemInstruction"),
    ([{"role": "assistant", "parts": []}], "payload[0].role"),
    ([{"role": "user"}], "payload[0].parts"),
    ([{"role": "user", "parts": [{}]}], "payload[0].parts[0]"),
    ([{"role": "user", "parts": [{"text": 7}]}], "payload[0].parts[0].text"),
    ([{"role": "user", "parts": [CALL]}], "payload[0].parts[0]"),
    ([{"role": "model", "parts": [{"functionCall": {}}]}], "payload[0].parts[0].functionCall.name"),
    (
        [{"role": "model", "parts": [{"functionCall": {"name": "x", "args": [1]}}]}],
        "payload[0].parts[0].functionCall.args",
    ),
    (
        [{"role": "user", "parts": [{"functionResponse": {"name": "x", "response": "y"}}]}],
        "payload[0].parts[0].functionResponse.response",
    ),
]
GEMINI += [
    (
        [{"role": "model", "parts": [{"functionCall": {"name": "x", "args": wrong}}]}],
        "payload[0].parts[0].functionCall.args",
    )
    for wrong in ([], "", 0, False)
]
GEMINI += [
    (
        [{"parts": [{"functionResponse": {"name": "x", "response": []}}]}],
        "payload[0].parts[0].functionResponse.response",
    ),
    (
        [{"parts": [{"functionResponse": {"name": "x", "id": 0}}]}],
        "payload[0].parts[0].functionResponse.id",
    ),
    ([{"parts": [{"inlineData": "x"}]}], "payload[0].parts[0].inlineData"),
    ([{"parts": [{"file_data": {"file_uri": 7}}]}], "payload[0].parts[0].fileData.file_uri"),
]
RESPONSES = [
    ({"input": 7}, "payload.input"),
    ({"input": [], "instructions": 7}, "payload.instructions"),
    ([{"role": "robot", "content": "x"}], "payload[0].role"),
    ([{"role": "user"}], "payload[0].content"),
    ([{"type": 7}], "payload[0].type"),
    ([{"role": "user", "content": [{"text": "x"}]}], "payload[0].content[0].type"),
    *(
        ([{"role": "user", "content": [{"type": kind, "text": 5}]}], "payload[0].content[0].text")
        for kind in ("text", "input_text", "output_text")
    ),
    ([{"type": "function_call", "name": "x"}], "payload[0].call_id"),
    ([{"type": "function_call", "call_id": "a"}], "payload[0].name"),
    (
        [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{"}],
        "payload[0].arguments",
    ),
    ([{"type": "function_call_output", "call_id": "a"}], "payload[0].output"),
]
RESPONSES_CALL = {"type": "function_call", "call_id": "a", "name": "s", "arguments": '["\\ud800"]'}
CASES = [
    *((anthropic_parse.parse, payload, field) for payload, field in ANTHROPIC),
    *((gemini_parse.parse, payload, field) for payload, field in GEMINI),
    *((openai_responses_parse.parse, payload, field) for payload, field in RESPONSES),
]


@pytest.mark.parametrize(("parse", "payload", "field"), CASES)
def test_an_error_names_the_member(parse: Callable[[str], object], payload: object, field: str):
    with pytest.raises(FieldInvalidError) as error:
        parse(json.dumps(payload))
    assert error.value.violations[0].field == field


@pytest.mark.parametrize(
    "parse", [anthropic_parse.parse, gemini_parse.parse, openai_responses_parse.parse]
)
@pytest.mark.parametrize("payload", ["", "7", "nope", "[" * 100_000, "NaN", '"x"'])
def test_what_is_no_payload_is_refused(parse: Callable[[str], object], payload: str):
    with pytest.raises(FieldInvalidError):
        parse(payload)


@pytest.mark.parametrize(
    ("parse", "payload"),
    [
        (anthropic_parse.parse, [{"role": "user", "content": [RESULT]}]),
        (
            gemini_parse.parse,
            [
                {
                    "parts": [
                        {"functionResponse": {"id": "a", "name": "s", "response": {"result": "x"}}}
                    ]
                }
            ],
        ),
        (
            openai_responses_parse.parse,
            [{"type": "function_call_output", "call_id": "a", "output": "x"}],
        ),
    ],
)
def test_a_result_without_its_call_becomes_a_message_and_is_reported(
    parse: Callable[[str], Parsed], payload: object
):
    parsed = parse(json.dumps(payload))
    [event] = parsed.events
    assert (event.type, event.role, event.content) == (EventType.MESSAGE, Role.TOOL, "x")
    assert parsed.repairs == (Repair("tool_call_missing", "a", ""),)


@pytest.mark.parametrize(
    ("parse", "payload", "field"),
    [
        (
            gemini_parse.parse,
            '[{"parts":[{"functionResponse":{"name":"s","response":{"q":1e999}}}]}]',
            "payload[0].parts[0].functionResponse.response",
        ),
        (
            gemini_parse.parse,
            '[{"role":"model","parts":[{"text":"x","functionCall":{"name":"s"}}]}]',
            "payload[0].parts[0]",
        ),
        (
            openai_responses_parse.parse,
            json.dumps([RESPONSES_CALL]),
            "payload[0].arguments",
        ),
    ],
)
def test_what_no_event_could_hold_is_refused(
    parse: Callable[[str], object], payload: str, field: str
):
    with pytest.raises(FieldInvalidError) as error:
        parse(payload)
    assert error.value.violations[0].field == field


@pytest.mark.parametrize("given", ["\ud800", "x" * 1_000, {"a": 1}, None])
def test_an_item_left_out_is_reported_by_a_sound_id_alone(given: object):
    payload = [{"type": "reasoning", "id": given, "summary": []}]
    assert openai_responses_parse.parse(json.dumps(payload)).repairs[0].tool_call_id == ""


@pytest.mark.parametrize("levels", [400, 600, 5_000])
def test_a_payload_has_so_many_levels_and_no_more(levels: int):
    deep = "[" * (levels - 2) + "]" * (levels - 2)
    payload = f'[{{"role":"assistant","content":"x","extra":{deep}}}]'
    if levels <= MAX_NESTING_LEVELS:
        assert openai_parse.parse(payload).events[0].content == "x"
        return
    with pytest.raises(FieldInvalidError, match="nested deeper than 500 levels"):
        openai_parse.parse(payload)


def test_a_long_text_in_one_part_is_words_alone():
    words = "x" * 70_000
    payload = [{"role": "user", "content": [{"type": "input_text", "text": words}]}]
    [event] = openai_responses_parse.parse(json.dumps(payload)).events
    assert (event.content, event.metadata) == (words, {})


def test_ids_that_repeat_are_told_apart_without_counting_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
):
    looked: list[str] = []
    calls = OpenCalls()

    class Used(set[str]):
        def __contains__(self, one: object) -> bool:
            looked.append(str(one))
            return super().__contains__(one)

    monkeypatch.setattr(calls, "_used", Used())
    ids = [calls.unique("a") for _ in range(1_000)]

    assert len(set(ids)) == 1_000
    assert len(looked) <= 3_000
