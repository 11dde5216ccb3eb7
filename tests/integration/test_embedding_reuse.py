"""Nothing is embedded twice: what was embedded before, wherever it stood, is taken from there."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.indexing import EmbeddingWork, indexed, nothing_to_index
from tests.support.memories import remembered, update
from tests.support.storage import RunningStorage, Tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.search import SearchScope
from annals_storage.postgres.outbox import PostgresOutbox

FACTS = [f"Fact number {number}: the lighthouse has {number} lamps." for number in range(6)]
LONG = " ".join(f"Paragraph {n} speaks of budgets, meetings and minutes." for n in range(120))


@pytest.fixture(autouse=True)
async def quiet(postgres: LocalPostgres) -> None:
    """What earlier tests left to index does not count as work of these."""
    await nothing_to_index(postgres)


async def remember(tenant: Tenant, *texts: str) -> tuple[str, list[str]]:
    """A conversation of these messages, indexed: its id and those of its events."""
    stored = await append(
        tenant.raw, await empty_conversation(tenant), *[user(text) for text in texts]
    )
    await indexed(tenant)
    return stored.conversation_id, ids(stored)


async def contents(tenant: Tenant, query: str) -> list[str]:
    found = await tenant.client.search.events(query, mode="lexical", limit=50)
    return [hit.event.message.content for hit in found.hits]


async def edit(tenant: Tenant, event_id: str, text: str) -> None:
    request = event_pb.EditEventRequest(event_id=event_id, event=user(text))
    await tenant.raw.call("EditEvent", request)
    await indexed(tenant)


async def check_mirror(storage: RunningStorage, tenant: Tenant) -> None:
    """What PostgreSQL and the engine hold of the tenant is the same."""
    status = await tenant.client.index.status()
    assert status.chunk_count == status.point_count
    outbox = PostgresOutbox(storage.adapters.database)
    truth = await outbox.list_chunks(UUID(tenant.tenant_id), after=None, limit=1000)
    mirror = await storage.adapters.vectors.list_chunks(
        UUID(tenant.tenant_id), after=None, limit=1000
    )
    assert truth == mirror


async def test_new_texts_are_embedded(tenant: Tenant) -> None:
    with EmbeddingWork() as work:
        await remember(tenant, *FACTS)

    assert (work.embedded, work.reused) == (len(FACTS), 0)


async def test_a_text_is_embedded_once_within_a_batch_and_after(tenant: Tenant) -> None:
    with EmbeddingWork() as work:
        await remember(tenant, *[FACTS[0]] * 10, FACTS[1])
        await remember(tenant, *FACTS[:2])

    assert (work.embedded, work.reused) == (2, 11)
    assert sorted(await contents(tenant, "lighthouse")) == [FACTS[0]] * 11 + [FACTS[1]] * 2


async def test_texts_of_other_tenants_are_not_reused(tenant: Tenant, other_tenant: Tenant) -> None:
    await remember(other_tenant, *FACTS)

    with EmbeddingWork() as work:
        await remember(tenant, *FACTS)

    assert (work.embedded, work.reused) == (len(FACTS), 0)


async def test_a_new_owner_embeds_nothing(storage: RunningStorage, tenant: Tenant) -> None:
    room, _ = await remember(tenant, *FACTS, LONG)

    with EmbeddingWork() as work:
        await tenant.client.conversations.update(room, user_id="ann")
        await indexed(tenant)

    assert work.embedded == 0
    assert work.reused > len(FACTS)
    found = await tenant.client.search.events("lighthouse", user_id="ann", limit=50)
    assert len(found.hits) >= len(FACTS)
    await check_mirror(storage, tenant)


async def test_a_restored_conversation_embeds_nothing(
    storage: RunningStorage, tenant: Tenant
) -> None:
    room, _ = await remember(tenant, *FACTS)
    await tenant.client.conversations.delete(room)
    await indexed(tenant)

    with EmbeddingWork() as work:
        await tenant.client.conversations.restore(room)
        await indexed(tenant)

    assert (work.embedded, work.reused) == (0, len(FACTS))
    assert len(await contents(tenant, "lighthouse")) == len(FACTS)
    await check_mirror(storage, tenant)


async def test_the_engines_data_is_made_anew_without_the_model(
    storage: RunningStorage, tenant: Tenant
) -> None:
    room, _ = await remember(tenant, *FACTS, LONG)
    vectors, tenant_id = storage.adapters.vectors, UUID(tenant.tenant_id)
    before = await vectors.count_points(tenant_id)
    await vectors.delete_conversation(tenant_id, UUID(room))

    with EmbeddingWork() as work:
        await PostgresOutbox(storage.adapters.database).enqueue_tenant(tenant_id)
        await indexed(tenant)

    assert work.embedded == 0
    assert await vectors.count_points(tenant_id) == before
    await check_mirror(storage, tenant)


async def test_a_fork_embeds_nothing(storage: RunningStorage, tenant: Tenant) -> None:
    room, _ = await remember(tenant, *FACTS, LONG)

    with EmbeddingWork() as work:
        request = conversation_pb.ForkConversationRequest(conversation_id=room)
        fork = (await tenant.raw.call("ForkConversation", request)).conversation
        await indexed(tenant)

    assert work.embedded == 0
    assert work.reused > len(FACTS)
    scope = SearchScope(UUID(tenant.tenant_id), conversation_ids=(UUID(fork.conversation_id),))
    assert await storage.adapters.vectors.count(scope) == work.reused
    await check_mirror(storage, tenant)


async def test_a_deleted_event_leaves_and_returns_without_the_model(
    storage: RunningStorage, tenant: Tenant
) -> None:
    _, (first, *_) = await remember(tenant, *FACTS)

    with EmbeddingWork() as work:
        await tenant.raw.call("DeleteEvent", event_pb.DeleteEventRequest(event_id=first))
        hidden = await contents(tenant, "lighthouse")
        await indexed(tenant)
        without = await tenant.client.index.status()
        await check_mirror(storage, tenant)
        await tenant.raw.call("RestoreEvent", event_pb.RestoreEventRequest(event_id=first))
        await indexed(tenant)

    assert FACTS[0] not in hidden
    assert without.point_count == len(FACTS) - 1
    assert work.embedded == 0
    assert sorted(await contents(tenant, "lighthouse")) == FACTS
    await check_mirror(storage, tenant)


async def test_an_edit_drops_the_old_chunks_and_embeds_the_new_alone(
    storage: RunningStorage, tenant: Tenant
) -> None:
    _, (event_id,) = await remember(tenant, LONG)
    before = (await tenant.client.index.status()).point_count

    with EmbeddingWork() as first:
        await edit(tenant, event_id, "A short word about flamingos.")
    short = (await tenant.client.index.status()).point_count
    with EmbeddingWork() as second:
        await edit(tenant, event_id, f"{LONG} And an end.")
    with EmbeddingWork() as third:
        await edit(tenant, event_id, FACTS[0])

    assert before > 4
    assert (short, first.embedded) == (1, 1)
    assert second.embedded == before, "the former chunks were dropped, with their embeddings"
    assert third.embedded == 1
    assert await contents(tenant, "flamingos") == []
    assert await contents(tenant, "budgets") == []
    assert await contents(tenant, "lighthouse") == [FACTS[0]]
    await check_mirror(storage, tenant)


async def test_a_changed_end_embeds_the_end_alone(storage: RunningStorage, tenant: Tenant) -> None:
    _, (event_id,) = await remember(tenant, LONG)

    with EmbeddingWork() as work:
        await edit(tenant, event_id, f"{LONG} And an end.")

    assert work.embedded == 1
    await check_mirror(storage, tenant)


async def test_a_memory_is_embedded_again_only_for_new_content(tenant: Tenant) -> None:
    memory = await remembered(tenant, FACTS[0])
    await indexed(tenant)

    with EmbeddingWork() as tagged:
        await update(tenant, res.Memory(memory_id=memory.memory_id, tags=["t"]), "tags")
        await tenant.client.conversations.delete(memory.conversation_id)
        await indexed(tenant)
        await tenant.client.conversations.restore(memory.conversation_id)
        await indexed(tenant)
    with EmbeddingWork() as reworded:
        await update(tenant, res.Memory(memory_id=memory.memory_id, content="x"), "content")
        await indexed(tenant)

    assert (tagged.embedded, reworded.embedded) == (0, 1)
