"""A tenant for synchronous tests: hypothesis runs each example to its end on the session's loop.

Something is there under the ids that the messages are made with, so that not all of them end at
"not found".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.fuzz.generated import KNOWN_IDS
from tests.support.appending import append
from tests.support.storage import RunningStorage, Tenant, fresh_tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as tenant_pb
from annals_client import tool_call, user

Fuzzed = tuple[asyncio.AbstractEventLoop, Tenant]


@pytest.fixture
async def fuzzed(storage: RunningStorage) -> AsyncIterator[Fuzzed]:
    async with fresh_tenant(storage) as tenant:
        await _plant(tenant)
        yield asyncio.get_running_loop(), tenant


async def _plant(tenant: Tenant) -> None:
    conversation_id, event_id, agent_id, _ = KNOWN_IDS
    agent = res.Agent(agent_id=agent_id, display_name="a")
    await tenant.raw.call("CreateAgent", tenant_pb.CreateAgentRequest(agent=agent))
    conversation = res.Conversation(conversation_id=conversation_id, agent_id=agent_id)
    await tenant.raw.call(
        "CreateConversation", conversation_pb.CreateConversationRequest(conversation=conversation)
    )
    said = user("a")
    said.event_id = event_id
    await append(tenant.raw, conversation_id, said, tool_call("a", "a"))
