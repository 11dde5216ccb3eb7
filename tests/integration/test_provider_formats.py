"""Stored conversations in the formats of providers, over gRPC."""

from __future__ import annotations

import json

import pytest

from annals_client import AsyncAnnalsClient, assistant, system, tool_call, tool_result, user
from annals_client.errors import InvalidArgumentError

FORMATS = ["openai-chat", "openai-responses", "anthropic-messages", "gemini-contents"]


@pytest.mark.parametrize("payload_format", FORMATS)
async def test_what_was_stored_is_rendered_parsed_and_stored_alike(
    annals: AsyncAnnalsClient, payload_format: str
) -> None:
    said = [
        system("Be brief."),
        user("Weather?"),
        tool_call("call_1", "get_weather", {"city": "Bern"}),
        tool_result("call_1", "grey"),
        assistant("Grey."),
    ]
    stored = await annals.events.append("", said)
    events = [event async for event in annals.events.list(stored.conversation_id)]

    rendered = await annals.formats.render(events, payload_format=payload_format)
    parsed = await annals.formats.parse(rendered.payload, payload_format=payload_format)
    again = await annals.events.append("", parsed.events)
    copies = [event async for event in annals.events.list(again.conversation_id)]

    assert rendered.total_tokens > 0
    assert not rendered.repairs
    assert not parsed.repairs
    repeated = await annals.formats.render(copies, payload_format=payload_format)
    assert json.loads(repeated.payload) == json.loads(rendered.payload)


async def test_contexts_are_not_written_in_every_format_yet(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("Weather?")])
    with pytest.raises(InvalidArgumentError) as error:
        await annals.context.prepare(
            stored.conversation_id, budget_tokens=100, payload_format="anthropic-messages"
        )
    assert "format" in str(error.value)
