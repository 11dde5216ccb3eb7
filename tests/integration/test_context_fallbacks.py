"""Contexts while storage is partly down: what can be had, and what is missing by name."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import pytest
from prometheus_client import REGISTRY
from tests.support.context import RunningContext, running_context
from tests.support.indexing import hold_back, indexed
from tests.support.planting import move_to_cold
from tests.support.proxy import proxy_to
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import AsyncAnnalsClient, assistant, tool_call, tool_result, user
from annals_client.errors import AnnalsRpcError
from annals_local.postgres import LocalPostgres


@pytest.fixture
async def room(annals: AsyncAnnalsClient, tenant: Tenant) -> str:
    agent = await annals.agents.create("a", system_prompt="Be brief.")
    made = await annals.conversations.create(agent_id=agent.agent_id)
    notes = [user(f"Note {i}: the weather was grey.") for i in range(80)]
    fact = user("The spare anchor is in shed seven.")
    await annals.events.append(made.conversation_id, [fact, *notes])
    await indexed(tenant)
    return made.conversation_id


@asynccontextmanager
async def silenced(
    storage: RunningStorage, tenant: Tenant, *methods: str
) -> AsyncIterator[AsyncAnnalsClient]:
    """A client of a context service to which these methods of storage never answer."""
    async with (
        proxy_to(storage.address, silent=frozenset(methods)) as address,
        running_context(address) as context,
        AsyncAnnalsClient(address, context.address, api_key=tenant.api_key) as client,
    ):
        yield client


async def test_without_the_agent_the_prompt_is_missing(
    storage: RunningStorage, tenant: Tenant, room: str
) -> None:
    async with silenced(storage, tenant, "GetAgent") as client:
        prepared = await client.context.prepare(room, budget_tokens=400, query="anchor", timeout=3)

    assert list(prepared.degraded) == ["agent"]
    assert "Be brief." not in prepared.payload
    assert "shed seven" in prepared.payload
    assert "Note 79" in prepared.payload


async def test_without_a_list_the_search_fills_the_context(
    storage: RunningStorage, tenant: Tenant, room: str
) -> None:
    async with silenced(storage, tenant, "ListEvents") as client:
        prepared = await client.context.prepare(room, budget_tokens=400, query="anchor", timeout=3)

    assert list(prepared.degraded) == ["older_events", "recent_events"]
    assert "shed seven" in prepared.payload
    assert "Be brief." in prepared.payload
    assert prepared.omitted_events == 81 - sum(1 for item in prepared.items if item.seq)


async def test_with_neither_list_nor_search_there_is_no_context(
    storage: RunningStorage, tenant: Tenant, room: str
) -> None:
    async with silenced(storage, tenant, "ListEvents", "SearchEvents") as client:
        with pytest.raises(AnnalsRpcError) as caught:
            await client.context.prepare(room, budget_tokens=400, current_message="?", timeout=3)

    assert caught.value.reason == "DEADLINE_EXCEEDED"


async def test_a_conversation_that_cannot_be_read_stays_an_error(
    storage: RunningStorage, tenant: Tenant, room: str
) -> None:
    async with silenced(storage, tenant, "GetConversation") as client:
        with pytest.raises(AnnalsRpcError) as caught:
            await client.context.prepare(room, budget_tokens=400, query="anchor", timeout=2)

    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_while_cold_words_are_away_the_newest_are_there(
    storage: RunningStorage, tenant: Tenant, annals: AsyncAnnalsClient
) -> None:
    notes = [user(f"Note {i}: the weather was grey.") for i in range(40)]
    calls = [tool_call("c", "look"), tool_result("c", "fog"), assistant("It is foggy.")]
    room = (await annals.events.append("", [*notes, *calls])).conversation_id
    await indexed(tenant)
    await move_to_cold(tenant, room, until_seq=30)
    shutil.rmtree(storage.data_dir / "cold" / tenant.tenant_id)

    not_kept = sample(PUTS, outcome="degraded")

    prepared = await annals.context.prepare(room, budget_tokens=400, query="weather", timeout=30)

    assert "older_events" in prepared.degraded
    assert "recent_events" not in prepared.degraded
    assert "It is foggy." in prepared.payload
    assert prepared.omitted_events >= 30
    # What is less than it could be is not kept.
    assert sample(PUTS, outcome="degraded") == not_kept + 1


async def test_a_cancelled_context_cancels_its_calls_to_storage(
    annals: AsyncAnnalsClient, context: RunningContext, postgres: LocalPostgres, tenant: Tenant
) -> None:
    room = (await annals.events.append("", [user("anchor")])).conversation_id
    await indexed(tenant)
    hold_back(postgres, tenant, room)
    before = sample(CALLS, method="SearchEvents", code="CANCELLED")
    waiting = asyncio.create_task(
        annals.context.prepare(room, budget_tokens=400, read_your_writes=True, timeout=60)
    )
    await eventually(reading(IN_FLIGHT, service=SEARCH), lambda count: count == 1)

    waiting.cancel()

    # Well before the search would have given up by itself.
    cancelled = reading(CALLS, method="SearchEvents", code="CANCELLED")
    await eventually(cancelled, lambda count: count == before + 1, timeout_s=3)


CALLS, IN_FLIGHT = "annals_rpc_calls_total", "annals_rpc_in_flight"
PUTS = "annals_context_cache_puts_total"
SEARCH = "annals.storage.v1.SearchService"


def sample(name: str, **labels: str) -> float:
    """The sum of the samples with these labels."""
    return sum(
        each.value
        for metric in REGISTRY.collect()
        for each in metric.samples
        if each.name == name and labels.items() <= each.labels.items()
    )


def reading(name: str, **labels: str) -> Callable[[], Awaitable[float]]:
    async def read() -> float:
        return sample(name, **labels)

    return read
