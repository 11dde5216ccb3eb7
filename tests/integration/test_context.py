"""PrepareContext through real storage: what the model should see next, in N tokens."""

from __future__ import annotations

import json

import pytest
from tests.support.context import RunningContext, running_context
from tests.support.proxy import proxy_to
from tests.support.storage import RunningStorage, Tenant
from tests.unit.context.checks import CHECKS

from annals.context.v1 import resources_pb2 as res
from annals_client import AsyncAnnalsClient, assistant, tool_call, tool_result, user
from annals_client.errors import BudgetTooSmallError, NotFoundError, UnauthenticatedError
from annals_common.tokenizers import count_tokens, load_encoding
from annals_context.domain.model import PayloadFormat

FORMATS = [
    name.removeprefix("PAYLOAD_FORMAT_").lower().replace("_", "-")
    for name in res.PayloadFormat.keys()[1:]
]


def tokens(payload: str, encoding: str = "o200k_base") -> int:
    return count_tokens(load_encoding(encoding), payload)


async def long_conversation(annals: AsyncAnnalsClient) -> str:
    """A fact, far behind eighty notes."""
    fact = user("The ferry's spare anchor is stored in shed seven.")
    notes = [user(f"Note {i}: the weather was grey and nothing happened.") for i in range(80)]
    return (await annals.events.append("", [fact, *notes])).conversation_id


async def test_a_small_conversation_is_returned_whole(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("What is our SLA?"), assistant("99.9 %")])

    prepared = await annals.context.prepare(stored.conversation_id, budget_tokens=1_000)

    assert json.loads(prepared.payload) == [
        {"role": "user", "content": "What is our SLA?"},
        {"role": "assistant", "content": "99.9 %"},
    ]
    assert prepared.total_tokens == tokens(prepared.payload)
    assert sum(entry.tokens for entry in prepared.ledger) == prepared.total_tokens
    assert prepared.strategy == res.STRATEGY_FULL


async def test_an_old_fact_is_found_and_fits(annals: AsyncAnnalsClient) -> None:
    conversation_id = await long_conversation(annals)

    prepared = await annals.context.prepare(
        conversation_id,
        budget_tokens=400,
        query="Where is the spare anchor?",
        read_your_writes=True,
        timeout=30,
    )

    assert "shed seven" in prepared.payload
    assert prepared.total_tokens == tokens(prepared.payload) <= 400
    assert not prepared.degraded
    assert prepared.omitted_events > 0
    assert prepared.strategy == res.STRATEGY_SNIPPET


async def test_tool_calls_come_with_their_results(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append(
        "",
        [
            user("Weather?"),
            tool_call("call_1", "get_weather", {"city": "Bern"}),
            tool_result("call_1", '{"celsius": 4}'),
            assistant("Four degrees."),
        ],
    )

    prepared = await annals.context.prepare(stored.conversation_id, budget_tokens=1_000)

    _, call, result, _ = json.loads(prepared.payload)
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
    assert not prepared.repairs


async def test_the_same_request_gives_the_same_bytes(annals: AsyncAnnalsClient) -> None:
    conversation_id = await long_conversation(annals)
    wanted = {"budget_tokens": 500, "query": "anchor", "read_your_writes": True, "timeout": 30}

    first = await annals.context.prepare(conversation_id, **wanted)
    second = await annals.context.prepare(conversation_id, **wanted)

    assert first.payload == second.payload
    assert first.context_version == second.context_version


async def test_a_new_event_changes_the_version(annals: AsyncAnnalsClient) -> None:
    stored = await annals.events.append("", [user("one")])
    before = await annals.context.prepare(stored.conversation_id, budget_tokens=100)

    await annals.events.append(stored.conversation_id, [user("two")])

    after = await annals.context.prepare(stored.conversation_id, budget_tokens=100)
    assert after.context_version != before.context_version
    assert after.conversation_version > before.conversation_version


async def test_the_agents_prompt_comes_first_and_decides_the_tokenizer(
    annals: AsyncAnnalsClient,
) -> None:
    agent = await annals.agents.create("Pilot", system_prompt="You are a pilot.", model="gpt-4")
    conversation = await annals.conversations.create(agent_id=agent.agent_id)
    await annals.events.append(conversation.conversation_id, [user("Ahoy")])

    prepared = await annals.context.prepare(conversation.conversation_id, budget_tokens=200)

    assert json.loads(prepared.payload)[0] == {"role": "system", "content": "You are a pilot."}
    assert prepared.counter.encoding == "cl100k_base"
    assert prepared.total_tokens == tokens(prepared.payload, "cl100k_base")


async def said_with_a_tool(annals: AsyncAnnalsClient) -> str:
    """An agent's conversation: its prompt, thirty notes, a call whose result never came."""
    agent = await annals.agents.create("Pilot", system_prompt="You are a pilot.", model="gpt-4o")
    made = await annals.conversations.create(agent_id=agent.agent_id)
    notes = [user(f"Note {i}: nothing happened.") for i in range(30)]
    calls = [
        tool_call("call 1", "get_weather", {"city": "Bern"}),
        tool_result("call 1", "grey"),
        assistant("Grey."),
        tool_call("call 2", "get_weather", {"city": "Thun"}),
    ]
    await annals.events.append(made.conversation_id, [*notes, *calls])
    return made.conversation_id


@pytest.mark.parametrize("payload_format", FORMATS)
async def test_every_format_satisfies_its_provider_and_the_budget(
    annals: AsyncAnnalsClient, payload_format: str
) -> None:
    conversation_id = await said_with_a_tool(annals)

    prepared = await annals.context.prepare(
        conversation_id,
        budget_tokens=500,
        current_message="And now?",
        payload_format=payload_format,
        strategy="snippet",
        recent_events=5,
    )

    CHECKS[PayloadFormat(payload_format.replace("-", "_"))](prepared.payload)
    assert prepared.total_tokens == tokens(prepared.payload) <= 500
    assert prepared.payload.index("You are a pilot.") < prepared.payload.index("Note 24:")
    assert prepared.payload.index("Note 24:") < prepared.payload.index("And now?")
    kinds = {repair.kind for repair in prepared.repairs}
    assert kinds == (set() if payload_format == "text" else {"tool_result_missing"})


@pytest.mark.parametrize("payload_format", FORMATS)
async def test_the_smallest_workable_budget_is_named_and_works(
    annals: AsyncAnnalsClient, payload_format: str
) -> None:
    conversation_id = await long_conversation(annals)

    with pytest.raises(BudgetTooSmallError) as refused:
        await annals.context.prepare(
            conversation_id, budget_tokens=1, payload_format=payload_format
        )

    minimum = refused.value.minimum_budget_tokens
    prepared = await annals.context.prepare(
        conversation_id, budget_tokens=minimum, payload_format=payload_format
    )
    assert 0 < prepared.total_tokens <= minimum
    with pytest.raises(BudgetTooSmallError):
        await annals.context.prepare(
            conversation_id, budget_tokens=minimum - 1, payload_format=payload_format
        )


async def test_a_reserve_is_kept_free(annals: AsyncAnnalsClient) -> None:
    conversation_id = await long_conversation(annals)

    prepared = await annals.context.prepare(
        conversation_id, budget_tokens=600, response_reserve_tokens=250
    )

    assert prepared.total_tokens <= 350


async def test_a_silent_search_degrades_to_the_newest_events(
    storage: RunningStorage, tenant: Tenant, annals: AsyncAnnalsClient
) -> None:
    conversation_id = await long_conversation(annals)
    async with (
        proxy_to(storage.address, silent=frozenset({"SearchEvents"})) as address,
        running_context(address) as context,
        AsyncAnnalsClient(address, context.address, api_key=tenant.api_key) as client,
    ):
        prepared = await client.context.prepare(
            conversation_id, budget_tokens=400, query="anchor", timeout=2
        )

    assert list(prepared.degraded) == ["search_timeout"]
    assert "Note 79" in prepared.payload


async def test_a_foreign_conversation_answers_like_a_missing_one(
    annals: AsyncAnnalsClient, other_tenant: Tenant
) -> None:
    foreign = await other_tenant.client.events.append("", [user("secret")])
    missing = "0199c7a2-7d4e-7b1e-9c55-0242ac120002"

    failures = []
    for conversation_id in (foreign.conversation_id, missing):
        with pytest.raises(NotFoundError) as refused:
            await annals.context.prepare(conversation_id, budget_tokens=100)
        failures.append(str(refused.value).replace(conversation_id, "<id>"))

    assert failures[0] == failures[1]


async def test_invalid_credentials_are_refused_before_anything_else(
    storage: RunningStorage, context: RunningContext
) -> None:
    async with AsyncAnnalsClient(storage.address, context.address, api_key="annals_x") as client:
        with pytest.raises(UnauthenticatedError):
            await client.formats.count_tokens(["one"])
