"""Images, thoughts and other parts of messages between providers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.context.histories import message
from tests.unit.context.provider_checks import check_anthropic, check_gemini, check_responses
from tests.unit.context.test_provider_formats import ANTHROPIC, FORMATS, GEMINI, RESPONSES, Format

from annals_context.domain.formats import (
    anthropic_messages,
    anthropic_parse,
    gemini_contents,
    gemini_parse,
    openai_chat,
    openai_parse,
    openai_responses,
    openai_responses_parse,
)
from annals_context.domain.formats.providers import PARSERS, RENDERERS
from annals_context.domain.model import PayloadFormat

PIXEL = "iVBORw0KGgo="
IMAGES = {
    "openai": (
        openai_parse.parse,
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
                ],
            }
        ],
    ),
    "anthropic": (
        anthropic_parse.parse,
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                    },
                    {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                ],
            }
        ],
    ),
    "gemini": (
        gemini_parse.parse,
        [
            {
                "role": "user",
                "parts": [
                    {"text": "What is this?"},
                    {"inline_data": {"mime_type": "image/png", "data": PIXEL}},
                    {"fileData": {"fileUri": "https://x/y.png"}},
                ],
            }
        ],
    ),
    "responses": (
        openai_responses_parse.parse,
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {
                        "type": "input_image",
                        "image_url": f"data:image/png;base64,{PIXEL}",
                        "detail": "auto",
                    },
                    {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
                ],
            }
        ],
    ),
}


@pytest.mark.parametrize("source", IMAGES)
def test_images_of_one_provider_are_seen_by_the_others(source: str):
    parse, payload = IMAGES[source]
    events = parse(json.dumps(payload)).events
    assert [event.content for event in events] == ["What is this?"]

    [seen] = check_anthropic(anthropic_messages.render(events).payload)["messages"]
    assert seen["content"] == IMAGES["anthropic"][1][0]["content"]
    [shown] = check_gemini(gemini_contents.render(events).payload)["contents"]
    assert [next(iter(part)) for part in shown["parts"]][1:] != ["text", "text"]
    assert json.dumps(shown).count(PIXEL) == 1
    [item] = check_responses(openai_responses.render(events).payload)
    assert item["content"] == IMAGES["responses"][1][0]["content"]
    [chat] = json.loads(openai_chat.render(events).payload)
    assert chat["content"] == IMAGES["openai"][1][0]["content"]


SIGNED = {
    "anthropic": (
        ANTHROPIC,
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s1gned"},
                        {"type": "tool_use", "id": "a", "name": "search", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "redacted_thinking", "data": "s1gned"},
                        {"type": "text", "text": "Done."},
                    ],
                },
            ]
        },
    ),
    "gemini": (
        GEMINI,
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {
                    "role": "model",
                    "parts": [
                        {
                            "functionCall": {"id": "a", "name": "search", "args": {}},
                            "thoughtSignature": "s1gned",
                        }
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {
                            "functionResponse": {
                                "id": "a",
                                "name": "search",
                                "response": {"found": [1, 2.5]},
                            }
                        }
                    ],
                },
                {
                    "role": "model",
                    "parts": [{"text": "Hm.", "thought": True}, {"text": "Done."}],
                },
            ]
        },
    ),
    "responses": (
        RESPONSES,
        [
            {"type": "message", "role": "developer", "content": "Be brief."},
            {"type": "message", "role": "user", "content": "hi"},
            {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "s1gned"},
            {
                "type": "function_call",
                "call_id": "a",
                "name": "search",
                "arguments": '{ "q" : 1.0 }',
                "id": "fc1",
            },
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
    ),
}


@pytest.mark.parametrize("source", SIGNED)
def test_what_is_signed_comes_back_where_it_came_from_and_nowhere_else(source: str):
    form, payload = SIGNED[source]
    parsed = form.parse(json.dumps(payload))
    assert parsed.repairs == ()
    assert json.loads(form.render(parsed.events).payload) == payload
    others = [f for f in (ANTHROPIC, GEMINI, RESPONSES) if f is not form]
    for other in others:
        other.check(other.render(parsed.events).payload)
        assert "s1gned" not in other.render(parsed.events).payload
    assert "s1gned" not in openai_chat.render(parsed.events).payload


@FORMATS
def test_words_edited_since_are_not_overwritten_by_what_was_kept(form: Format):
    parse, payload = IMAGES["anthropic"]
    [event] = parse(json.dumps(payload)).events
    rendered = form.render([replace(event, content="new")]).payload
    assert "new" in rendered
    assert "What is this?" not in rendered
    assert PIXEL not in rendered


@pytest.mark.parametrize("poison", ['"\\ud800"', "1e999", "NaN"])
@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_metadata_that_no_payload_could_hold_counts_as_nothing(form: str, poison: str):
    part = f'[{{"type":"text","text":"hi","a":{poison}}}]'
    kept = f'{{"message":{{"content":{part}}},"content":{part},"item":{{"a":{poison}}}}}'
    event = message("hi", metadata={form: kept})
    for render in RENDERERS.values():
        assert "hi" in render([event]).payload.encode().decode()


LONG = "ä long message about owls\n" * 5_000
WORDS = [LONG, "", "end"]
IMAGE = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
LONG_PARTS = {
    "openai_chat": [{"type": "text", "text": text} for text in WORDS] + [IMAGE],
    "openai_responses": [
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
        *({"type": "input_text", "text": text} for text in WORDS),
    ],
    "anthropic_messages": [
        {"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "text", "text": "end"},
    ],
    "gemini_contents": [
        {"text": LONG[:9], "thought": True},
        {"text": LONG},
        {"fileData": {"fileUri": "https://x/y.png"}},
        {"text": "end"},
    ],
}


def in_parts(form: str) -> str:
    member = "parts" if form == "gemini_contents" else "content"
    item = {"role": "user", member: LONG_PARTS[form]}
    return json.dumps([{"type": "message", **item} if form == "openai_responses" else item])


@pytest.mark.parametrize("form", LONG_PARTS)
def test_long_messages_in_parts_come_back(form: str):
    payload = in_parts(form)
    [event] = PARSERS[PayloadFormat(form)](payload).events
    assert len(str(event.metadata[form])) < 500
    rendered = json.loads(RENDERERS[PayloadFormat(form)]([event]).payload)
    messages = next(iter(rendered.values())) if isinstance(rendered, dict) else rendered
    assert messages == json.loads(payload)


@pytest.mark.parametrize("form", LONG_PARTS)
def test_parts_of_words_edited_since_are_dropped_however_long_they_are(form: str):
    [event] = PARSERS[PayloadFormat(form)](in_parts(form)).events
    edited = replace(event, content=event.content.replace("owls", "cats"))
    for render in RENDERERS.values():
        assert "https://x/y.png" not in render([edited]).payload


def test_the_words_of_results_in_parts_are_left_out_as_well():
    content = [{"type": "text", "text": text} for text in (LONG, "end")]
    call = {"type": "tool_use", "id": "a", "name": "s", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": content}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    events = anthropic_parse.parse(json.dumps(messages)).events
    assert json.loads(anthropic_messages.render(events).payload)["messages"] == messages


@pytest.mark.parametrize("length", [-5, 10**9, True, 1.5, None])
def test_lengths_that_somebody_else_wrote_break_nothing(length: object):
    [event] = PARSERS[PayloadFormat.OPENAI_CHAT](in_parts("openai_chat")).events
    kept = json.loads(str(event.metadata["openai_chat"]))
    kept["message"]["content"][0]["text"] = length
    forged = replace(event, metadata={"openai_chat": json.dumps(kept)})
    for render in RENDERERS.values():
        assert "end" in render([forged]).payload
