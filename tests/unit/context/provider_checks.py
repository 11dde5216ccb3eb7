"""What each provider requires of a payload: its own client's types, and rules beyond types."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as gemini
from openai.types.responses import ResponseInputParam
from pydantic import BaseModel, ConfigDict, TypeAdapter

_ANTHROPIC = TypeAdapter(MessageCreateParamsNonStreaming)
_RESPONSES = TypeAdapter(ResponseInputParam)


class GeminiRequest(BaseModel):
    """The members of a request that a payload holds."""

    model_config = ConfigDict(extra="forbid")
    contents: list[gemini.Content]
    systemInstruction: gemini.Content | None = None  # noqa: N815 - the wire's name


def check_anthropic(payload: str) -> dict[str, Any]:
    """Check what the messages API requires, and return the payload."""
    request: dict[str, Any] = json.loads(payload)
    _ANTHROPIC.validate_python({"model": "m", "max_tokens": 1, **request})
    messages = request["messages"]
    _check_alternation([message["role"] for message in messages], ("user", "assistant"))
    called: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = _blocks(message["content"])
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert results == called, "results stand right after their calls, in order"
        assert [b["type"] for b in blocks][: len(results)] == ["tool_result"] * len(results)
        called = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert len({*called} - seen) == len(called), "an id stands for two calls"
        seen.update(called)
        assert all(b["text"].strip() for b in blocks if b["type"] == "text")
    assert not called
    return request


def check_gemini(payload: str) -> dict[str, Any]:
    """Check what generateContent requires, and return the payload."""
    request: dict[str, Any] = json.loads(payload)
    GeminiRequest.model_validate(request)
    contents = request["contents"]
    _check_alternation([content["role"] for content in contents], ("user", "model"))
    called: list[tuple[str, str]] = []
    for content in contents:
        parts = content["parts"]
        assert parts
        responses = [p["functionResponse"] for p in parts if "functionResponse" in p]
        assert [(r["id"], r["name"]) for r in responses] == called
        assert all("functionResponse" in p for p in parts[: len(responses)])
        calls = [p["functionCall"] for p in parts if "functionCall" in p]
        called = [(c["id"], c["name"]) for c in calls]
    assert not called
    return request


def check_responses(payload: str) -> list[dict[str, Any]]:
    """Check what the responses API requires of `input`, and return the items."""
    items: list[dict[str, Any]] = json.loads(payload)
    _RESPONSES.validate_python(items)
    called = [i["call_id"] for i in items if i["type"] == "function_call"]
    answered = [i["call_id"] for i in items if i["type"] == "function_call_output"]
    assert len(called) == len(set(called))
    assert sorted(called) == sorted(answered)
    for item in items:
        if item["type"] == "function_call":
            json.loads(item["arguments"])
    return items


def _check_alternation(roles: list[str], speakers: tuple[str, str]) -> None:
    assert not roles or roles[0] == speakers[0]
    assert all(before != after for before, after in pairwise(roles))
    assert {*roles} <= {*speakers}


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
