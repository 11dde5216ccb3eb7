"""A tenant for synchronous tests: hypothesis runs each example to its end on the session's loop.

Something is there under the ids that the messages are made with, so that not all of them end at
"not found".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.fuzz.generated import KNOWN_IDS
from tests.support.storage import RunningStorage, Tenant, fresh_tenant

from annals_client import tool_call, user

Fuzzed = tuple[asyncio.AbstractEventLoop, Tenant]


@pytest.fixture
async def fuzzed(storage: RunningStorage) -> AsyncIterator[Fuzzed]:
    async with fresh_tenant(storage) as tenant:
        await _plant(tenant)
        yield asyncio.get_running_loop(), tenant


async def _plant(tenant: Tenant) -> None:
    conversation_id, event_id, agent_id, _ = KNOWN_IDS
    await tenant.client.agents.create("a", agent_id=agent_id)
    await tenant.client.conversations.create(conversation_id=conversation_id, agent_id=agent_id)
    said = user("a")
    said.event_id = event_id
    await tenant.client.events.append(conversation_id, said, tool_call("a", "a"))
