"""Agents decide what makes a topic of their conversations."""

from __future__ import annotations

from tests.support.appending import append
from tests.support.storage import RunningStorage, Tenant
from tests.support.topics import BREAD, HARBOUR, clustered, clustering, topics_of, turns

from annals.storage.v1 import resources_pb2 as res
from annals_local.postgres import LocalPostgres


async def test_the_same_words_make_topics_or_none_as_the_agent_wants(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    strict = await own_tenant.client.agents.create(
        "Ada", index_config=res.IndexConfig(clustering_threshold=1)
    )
    rooms = [
        await own_tenant.client.conversations.create(agent_id=agent_id)
        for agent_id in (strict.agent_id, "")
    ]
    for room in rooms:
        await append(own_tenant.raw, room.conversation_id, *turns(HARBOUR, BREAD))

    async with clustering(own_storage):
        await clustered(own_tenant, own_postgres)
        found = [await topics_of(own_tenant.raw, room.conversation_id) for room in rooms]

    assert [len(topics) for topics in found] == [0, 2]
