"""Stored conversations in the formats of providers, over gRPC."""

from __future__ import annotations

import json

import pytest
from tests.support.context import RunningContext
from tests.support.end_users import create_agent, publishable_key
from tests.support.storage import RunningStorage, Tenant

from annals_client import (
    AsyncAnnalsClient,
    assistant,
    system,
    tool_call,
    tool_result,
    user,
)
from annals_client.errors import LimitExceededError, PermissionDeniedError

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


@pytest.mark.parametrize("method", ["render", "parse", "count_tokens"])
async def test_a_browsers_key_translates_nothing(
    storage: RunningStorage, context: RunningContext, tenant: Tenant, method: str
) -> None:
    key = await publishable_key(tenant, await create_agent(tenant))
    argument = [] if method == "render" else "[]"
    async with AsyncAnnalsClient(
        storage.address, context.address, api_key=key, session_id="a-session-of-a-browser-0001"
    ) as browser:
        with pytest.raises(PermissionDeniedError):
            await getattr(browser.formats, method)(argument)


async def test_metadata_no_payload_could_hold_keeps_no_context_from_being_made(
    annals: AsyncAnnalsClient,
) -> None:
    poison = {"openai_chat": '{"message":{"content":[{"type":"text","text":"hello","a":1e999}]}}'}
    stored = await annals.events.append("", [user("hello", metadata=poison)])

    prepared = await annals.context.prepare(stored.conversation_id, budget_tokens=100)

    assert json.loads(prepared.payload) == [{"role": "user", "content": "hello"}]


async def test_a_payload_of_too_many_messages_is_refused(annals: AsyncAnnalsClient) -> None:
    payload = json.dumps([{"role": "user", "content": ""}] * 10_001)
    with pytest.raises(LimitExceededError):
        await annals.formats.parse(payload)
