"""Topics of conversations, as a worker makes them, or without one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from tests.support.raw import Raw
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually
from tests.support.workers import due, working

from annals.storage.v1 import topic_service_pb2 as pb
from annals_client import user
from annals_common.channels import open_aio_channel
from annals_context.app_workers import commands
from annals_context.settings import ContextSettings
from annals_local.postgres import LocalPostgres

_PLANT = """
WITH member AS (
  INSERT INTO annals.topic_members
    (tenant_id, conversation_id, seq, topic_id, branch, event_version, event_time)
  VALUES (%(tenant_id)s, %(room)s, 1, %(topic_id)s, 1, 1, now())
),
run AS (
  INSERT INTO annals.topic_runs
    (tenant_id, conversation_id, branch, event_count, embedding_model, parameters)
  VALUES (%(tenant_id)s, %(room)s, 1, 1, 'm', '')
)
INSERT INTO annals.topics
  (tenant_id, topic_id, conversation_id, label, centroid, embedding_model, event_count, first_at,
   last_at)
VALUES (%(tenant_id)s, %(topic_id)s, %(room)s, 'planted', '', 'm', 1, now(), now())
"""
HARBOUR = (
    "The harbour master moved the ferry to berth nine.",
    "Which berth does the ferry use in the harbour now?",
    "The ferry leaves the harbour from berth nine at noon.",
    "Tell the harbour crew that the ferry is at berth nine.",
    "The harbour ferry will stay at berth nine all summer.",
)
BREAD = (
    "The sourdough bread needs two hours in the oven.",
    "How long do I bake sourdough bread in this oven?",
    "Bake the sourdough bread until its crust is brown.",
    "My sourdough bread came out of the oven with a hard crust.",
    "Let the sourdough bread rest after the oven.",
)


async def plant_topic(storage: RunningStorage, tenant: Tenant, room: str) -> str:
    """A topic with the conversation's first event, written into the tables."""
    topic_id, tenant_id = uuid4(), UUID(tenant.tenant_id)
    params = {"tenant_id": tenant_id, "room": UUID(room), "topic_id": topic_id}
    await storage.adapters.database.run(tenant_id, (_PLANT, params))
    return str(topic_id)


def turns(*themes: Sequence[str]) -> list[Any]:
    """What is said of each theme, in turn."""
    return [user(text) for texts in zip(*themes, strict=True) for text in texts]


@asynccontextmanager
async def clustering(storage: RunningStorage, **settings: Any) -> AsyncIterator[None]:
    """A worker that clusters until the end of the block."""
    channel = open_aio_channel(storage.address, None)
    try:
        async with working(storage, commands(channel, ContextSettings(**settings))):
            yield
    finally:
        await channel.close(None)


async def clustered(tenant: Tenant, postgres: LocalPostgres) -> None:
    """Have the tenant's jobs be due now, and wait until a worker has done those of topics."""
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
    await due(postgres, tenant, jobs=1)

    async def pending() -> bool:
        status = await tenant.client.jobs.status()
        return any(each.kind == 1 and each.pending_count for each in status.backlogs)

    await eventually(pending, lambda is_pending: not is_pending)


async def topics_of(raw: Raw, room: str, branch: int = 0) -> list[pb.Topic]:
    """The topics of a conversation, the largest first."""
    request = pb.ListTopicsRequest(conversation_id=room, branch=branch)
    return list((await raw.call("ListTopics", request)).topics)


async def events_of(raw: Raw, room: str, topic_id: str, **fields: Any) -> list[str]:
    """What the events of a topic say."""
    request = pb.ListTopicEventsRequest(conversation_id=room, topic_id=topic_id, **fields)
    return [it.message.content for it in (await raw.call("ListTopicEvents", request)).events]
