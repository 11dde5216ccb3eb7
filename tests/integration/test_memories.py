"""Memories through the whole service: store, read, change, delete, find."""

from __future__ import annotations

import asyncio
import math
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, state
from tests.support.memories import (
    DIMENSIONS,
    axis,
    find,
    found_ids,
    listed,
    remembered,
    store,
    update,
)
from tests.support.raw import Failure, failure
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import memory_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user
from annals_storage.app_adapters import mirror_parts
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.indexing import MemoryEmbedding
from annals_storage.domain.search import MemoryPoint, MemoryScope
from annals_storage.postgres.outbox import PostgresOutbox

DECISION = "Decided to use TypeScript for the server, for type safety."
DATABASE = "We chose PostgreSQL with row-level security as the database."
CAT = "The office cat is called Behemoth and sleeps on the printer."


async def indexed(tenant: Tenant) -> None:
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)


async def deleted(tenant: Tenant, memory_id: str) -> None:
    await tenant.raw.call("DeleteMemory", pb.DeleteMemoryRequest(memory_id=memory_id))


async def got(tenant: Tenant, memory_id: str) -> res.Memory:
    answer = await tenant.raw.call("GetMemory", pb.GetMemoryRequest(memory_id=memory_id))
    memory: res.Memory = answer.memory
    return memory


def check(refused: Failure, field: str, reason: str = "FIELD_INVALID") -> None:
    assert (refused.code.name, refused.reason) == ("INVALID_ARGUMENT", reason)
    assert refused.fields == (field,)


class TestStore:
    async def test_keeps_what_was_said(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        stored = await store(
            tenant,
            DECISION,
            conversation_id=room,
            tags=["decision", "architecture", "decision"],
            metadata={"source": {"page": 3}},
        )

        memory = stored.memory
        assert not stored.replayed
        assert (memory.conversation_id, memory.content, memory.version) == (room, DECISION, 1)
        assert list(memory.tags) == ["decision", "architecture"]
        assert memory.metadata["source"]["page"] == 3
        assert (memory.embedding_dimension, memory.caller_embedding) == (DIMENSIONS, False)
        assert UUID(memory.memory_id).version == 7
        assert await got(tenant, memory.memory_id) == memory

    async def test_counts_in_the_conversation_and_bumps_its_version(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        before = await state(tenant.raw, room)

        memory = await remembered(tenant, DECISION, conversation_id=room)
        after = await state(tenant.raw, room)
        await deleted(tenant, memory.memory_id)
        finally_ = await state(tenant.raw, room)

        assert (before.memory_count, after.memory_count, finally_.memory_count) == (0, 1, 0)
        assert before.version < after.version < finally_.version

    async def test_without_a_conversation_makes_an_anonymous_one(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")

        memory = await remembered(tenant, CAT, agent_id=agent.agent_id, session_id="s")

        room = await state(tenant.raw, memory.conversation_id)
        assert (room.agent_id, room.session_id, room.memory_count) == (agent.agent_id, "s", 1)

    async def test_into_an_ended_conversation_works(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await tenant.client.conversations.end(room)

        assert await remembered(tenant, CAT, conversation_id=room)

    async def test_an_unknown_agent_leaves_no_conversation(self, tenant: Tenant) -> None:
        refused = await failure(store(tenant, CAT, agent_id=str(uuid4())))

        assert refused.reason == "RESOURCE_NOT_FOUND"
        assert [room async for room in tenant.client.conversations.list()] == []

    async def test_a_deleted_conversation_takes_none(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await tenant.client.conversations.delete(room)

        refused = await failure(store(tenant, CAT, conversation_id=room))

        assert refused.reason == "RESOURCE_NOT_FOUND"


class TestRetries:
    @pytest.mark.parametrize("anonymous", [False, True])
    async def test_the_same_key_and_content_is_a_replay(
        self, tenant: Tenant, anonymous: bool
    ) -> None:
        room = "" if anonymous else await empty_conversation(tenant)
        call = {"conversation_id": room, "idempotency_key": "k", "tags": ["t"]}

        first = await store(tenant, CAT, **call)
        second = await store(tenant, CAT, **call)

        assert (first.replayed, second.replayed) == (False, True)
        assert first.memory == second.memory
        assert (await state(tenant.raw, first.memory.conversation_id)).memory_count == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"content": "other words"},
            {"tags": ["u"]},
            {"metadata": {"a": 1}},
            {"embedding": axis(0)},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    async def test_the_same_key_with_other_content_is_refused(
        self, tenant: Tenant, other: dict[str, Any]
    ) -> None:
        room = await empty_conversation(tenant)
        await store(tenant, CAT, conversation_id=room, idempotency_key="k")
        content = other.pop("content", CAT)

        refused = await failure(
            store(tenant, content, conversation_id=room, idempotency_key="k", **other)
        )

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"
        assert (await state(tenant.raw, room)).memory_count == 1

    async def test_a_key_belongs_to_its_conversation(self, tenant: Tenant) -> None:
        rooms = [await empty_conversation(tenant) for _ in range(2)]

        stored = [
            await store(tenant, CAT, conversation_id=room, idempotency_key="k") for room in rooms
        ]

        assert [answer.replayed for answer in stored] == [False, False]

    async def test_the_same_id_with_the_same_content_is_a_replay(self, tenant: Tenant) -> None:
        memory_id = str(uuid4())

        first = await store(tenant, CAT, memory_id=memory_id)
        second = await store(tenant, CAT, memory_id=memory_id)

        assert (second.replayed, second.memory) == (True, first.memory)

    async def test_an_id_that_is_taken_is_refused_and_stores_nothing(self, tenant: Tenant) -> None:
        taken = await remembered(tenant, CAT)

        refused = await failure(store(tenant, DECISION, memory_id=taken.memory_id))

        assert refused.reason == "RESOURCE_ALREADY_EXISTS"
        rooms = [room async for room in tenant.client.conversations.list()]
        assert [room.conversation_id for room in rooms] == [taken.conversation_id]

    async def test_together_store_once(self, tenant: Tenant) -> None:
        calls = [store(tenant, CAT, idempotency_key="k", session_id="s") for _ in range(16)]

        stored = await asyncio.gather(*calls)

        assert len({answer.memory.memory_id for answer in stored}) == 1
        assert [answer.replayed for answer in stored].count(False) == 1
        room = await state(tenant.raw, stored[0].memory.conversation_id)
        assert room.memory_count == 1


class TestEmbeddings:
    async def test_a_caller_embedding_is_found_by_its_direction(self, tenant: Tenant) -> None:
        mine = await remembered(tenant, CAT, embedding=axis(7, 250.0))
        await remembered(tenant, DECISION, embedding=axis(8, 0.001))

        found = await find(tenant, query_embedding=axis(7, 3.0))

        assert mine.caller_embedding
        assert [hit.memory.memory_id for hit in found.hits] == [mine.memory_id]
        assert found.hits[0].similarity == pytest.approx(1.0, abs=1e-3)

    @pytest.mark.parametrize(
        "values",
        [
            axis(0)[:-1],
            [*axis(0), 0.0],
            [1.0],
            axis(0, 0.0),
            axis(3, math.nan),
            axis(3, math.inf),
            axis(3, -math.inf),
        ],
        ids=["short", "long", "one", "zero", "NaN", "inf", "-inf"],
    )
    async def test_an_unusable_one_is_refused(self, tenant: Tenant, values: list[float]) -> None:
        memory = await remembered(tenant, CAT)

        check(await failure(store(tenant, CAT, embedding=values)), "embedding")
        check(await failure(find(tenant, query_embedding=values)), "query_embedding")
        check(await failure(update(tenant, memory, "content", embedding=values)), "embedding")

    async def test_the_largest_and_smallest_numbers_are_normalised(self, tenant: Tenant) -> None:
        for number, value in enumerate((3.4e38, 1e-45)):
            memory = await remembered(tenant, CAT, embedding=[value] * DIMENSIONS)
            found = await found_ids(
                tenant,
                query_embedding=[1.0] * DIMENSIONS,
                conversation_ids=[memory.conversation_id],
            )
            assert found == [memory.memory_id], number

    async def test_a_long_memory_is_found_by_its_end(self, tenant: Tenant) -> None:
        filler = "Minutes of a meeting about budgets and quarterly figures. " * 40
        long = await remembered(tenant, filler + "The parrot recites Homer at dawn. " * 40)
        await remembered(tenant, filler)

        found = await find(tenant, "a parrot that recites Homer", threshold=0.2)

        assert [hit.memory.memory_id for hit in found.hits] == [long.memory_id]


class TestUpdate:
    async def test_changes_what_the_mask_names(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT, tags=["a"], metadata={"x": 1})
        before = await state(tenant.raw, memory.conversation_id)

        changed = await update(tenant, res.Memory(memory_id=memory.memory_id, tags=["b"]), "tags")

        assert (list(changed.tags), changed.content, changed.version) == (["b"], CAT, 2)
        assert changed.metadata["x"] == 1
        assert await got(tenant, memory.memory_id) == changed
        after = await state(tenant.raw, memory.conversation_id)
        assert (after.memory_count, after.version) == (1, before.version + 1)

    async def test_new_content_is_found_and_the_old_is_not(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        assert await found_ids(tenant, CAT) == [memory.memory_id]

        await update(tenant, res.Memory(memory_id=memory.memory_id, content=DATABASE), "content")

        assert await found_ids(tenant, DATABASE) == [memory.memory_id]
        assert await found_ids(tenant, CAT) == []

    async def test_new_content_takes_the_place_of_a_caller_embedding(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT, embedding=axis(7))

        changed = await update(
            tenant, res.Memory(memory_id=memory.memory_id, content=DATABASE), "content"
        )

        assert not changed.caller_embedding
        assert await found_ids(tenant, DATABASE) == [memory.memory_id]
        assert await found_ids(tenant, query_embedding=axis(7)) == []

    async def test_a_version_that_moved_on_is_refused(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        mine = res.Memory(memory_id=memory.memory_id, tags=["mine"], version=1)
        await update(tenant, res.Memory(memory_id=memory.memory_id, tags=["theirs"]), "tags")

        refused = await failure(update(tenant, mine, "tags"))

        assert (refused.code.name, refused.reason) == ("ABORTED", "VERSION_MISMATCH")
        assert list((await got(tenant, memory.memory_id)).tags) == ["theirs"]

    async def test_one_of_two_with_the_same_version_wins(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        calls = [
            update(tenant, res.Memory(memory_id=memory.memory_id, tags=[t], version=1), "tags")
            for t in "abcdefgh"
        ]

        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1
        assert (await got(tenant, memory.memory_id)).version == 2

    @pytest.mark.parametrize("paths", [[], ["version"], ["memory_id"], ["content", "nonsense"]])
    async def test_other_masks_are_refused(self, tenant: Tenant, paths: list[str]) -> None:
        memory = await remembered(tenant, CAT)

        check(await failure(update(tenant, memory, *paths)), "update_mask")

    async def test_an_embedding_needs_new_content(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)

        check(await failure(update(tenant, memory, "tags", embedding=axis(0))), "embedding")


class TestDelete:
    async def test_is_for_good(self, tenant: Tenant, storage: RunningStorage) -> None:
        memory = await remembered(tenant, CAT)
        await indexed(tenant)

        await deleted(tenant, memory.memory_id)

        assert await found_ids(tenant, CAT) == []
        again = await failure(deleted(tenant, memory.memory_id))
        assert again.reason == "RESOURCE_NOT_FOUND"
        assert await listed(tenant) == []
        await indexed(tenant)
        assert await storage.adapters.vectors.count_points(UUID(tenant.tenant_id)) == 0

    async def test_makes_room_for_a_search_before_the_mirror_follows(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        await indexed(tenant)
        await deleted(tenant, memory.memory_id)

        found = await find(tenant, CAT, freshness="SEARCH_FRESHNESS_EVENTUAL")

        assert list(found.hits) == []


class TestList:
    async def test_pages_newest_first(self, tenant: Tenant) -> None:
        stored = [await remembered(tenant, f"memory {n}") for n in range(7)]

        found = await listed(tenant, page_size=3)

        assert [memory.content for memory in found] == [m.content for m in reversed(stored)]

    async def test_by_conversation_and_by_every_tag(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        both = await remembered(tenant, "x", conversation_id=room, tags=["a", "b"])
        await remembered(tenant, "y", conversation_id=room, tags=["a"])
        await remembered(tenant, "z", tags=["a", "b"])

        assert [m.memory_id for m in await listed(tenant, conversation_id=room, tags=["b", "a"])] \
            == [both.memory_id]  # fmt: skip
        assert len(await listed(tenant, tags=["a"])) == 3
        assert await listed(tenant, tags=["A"]) == []

    async def test_an_unknown_conversation_is_not_found(self, tenant: Tenant) -> None:
        refused = await failure(listed(tenant, conversation_id=str(uuid4())))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_a_token_of_another_query_is_refused(self, tenant: Tenant) -> None:
        for n in range(2):
            await remembered(tenant, f"memory {n}", tags=["t"])
        page = await tenant.raw.call("ListMemories", pb.ListMemoriesRequest(page_size=1))

        request = pb.ListMemoriesRequest(tags=["t"], page_token=page.next_page_token)
        refused = await failure(tenant.raw.call("ListMemories", request))

        assert refused.reason == "PAGE_TOKEN_INVALID"


class TestSearch:
    async def test_finds_by_meaning_most_similar_first(self, tenant: Tenant) -> None:
        decision = await remembered(tenant, DECISION)
        database = await remembered(tenant, DATABASE)
        await remembered(tenant, CAT)

        found = await find(tenant, "which database did we choose", threshold=0.2)

        assert found.hits[0].memory.memory_id == database.memory_id
        similarities = [hit.similarity for hit in found.hits]
        assert similarities == sorted(similarities, reverse=True)
        assert all(0.2 <= value <= 1 for value in similarities)
        assert (await found_ids(tenant, "programming language"))[:1] in (
            [], [decision.memory_id],
        )  # fmt: skip

    async def test_the_threshold_is_half_unless_given(self, tenant: Tenant) -> None:
        await remembered(tenant, CAT)
        query = "a feline in the bureau"
        everything = await find(tenant, query, threshold=0.0)
        similarity = everything.hits[0].similarity

        standard = await find(tenant, query)
        exact = await find(tenant, query, threshold=similarity)
        above = await find(tenant, query, threshold=math.nextafter(similarity, 2))

        assert len(standard.hits) == (similarity >= 0.5)
        assert (len(exact.hits), len(above.hits)) == (1, 0)

    async def test_five_hits_unless_asked_otherwise(self, tenant: Tenant) -> None:
        for number in range(8):
            await remembered(tenant, f"{CAT} Note {number}.")

        assert len((await find(tenant, CAT)).hits) == 5
        assert len((await find(tenant, CAT, top_k=3)).hits) == 3
        assert len((await find(tenant, CAT, top_k=100)).hits) == 8

    async def test_every_tag_must_be_there(self, tenant: Tenant) -> None:
        both = await remembered(tenant, CAT, tags=["pets", "office"])
        one = await remembered(tenant, CAT, tags=["pets"])

        assert set(await found_ids(tenant, CAT, tags=["pets"])) == {both.memory_id, one.memory_id}
        assert await found_ids(tenant, CAT, tags=["pets", "office"]) == [both.memory_id]
        assert await found_ids(tenant, CAT, tags=["Pets"]) == []

    async def test_conversations_agents_and_users_narrow_it(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        a = await tenant.client.conversations.create(agent_id=agent.agent_id)
        b = await tenant.client.conversations.create(user_id="ann")
        in_a = await remembered(tenant, CAT, conversation_id=a.conversation_id)
        in_b = await remembered(tenant, CAT, conversation_id=b.conversation_id)
        await remembered(tenant, CAT)

        rooms = [a.conversation_id, b.conversation_id]
        assert len(await found_ids(tenant, CAT)) == 3
        assert set(await found_ids(tenant, CAT, conversation_ids=rooms)) \
            == {in_a.memory_id, in_b.memory_id}  # fmt: skip
        assert await found_ids(tenant, CAT, agent_id=agent.agent_id) == [in_a.memory_id]
        assert await found_ids(tenant, CAT, user_id="ann") == [in_b.memory_id]
        assert await found_ids(tenant, CAT, user_id="ann", agent_id=agent.agent_id) == []

    async def test_a_moved_conversation_takes_its_memories_along(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        await indexed(tenant)

        await tenant.client.conversations.update(memory.conversation_id, user_id="ann")

        await indexed(tenant)
        assert await found_ids(tenant, CAT, user_id="ann") == [memory.memory_id]

    async def test_events_and_memories_do_not_mix(self, tenant: Tenant) -> None:
        memory = await remembered(tenant, CAT)
        await append(tenant.raw, memory.conversation_id, user(CAT))
        await indexed(tenant)

        events = await tenant.client.search.events(CAT)
        everywhere = await tenant.client.search.events(CAT, mode="dense", limit=100)

        assert [hit.seq for hit in events.hits] == [1]
        assert len(everywhere.hits) == 1
        assert await found_ids(tenant, CAT) == [memory.memory_id]

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({}, "query"),
            ({"query": " \n"}, "query"),
            ({"query": "x", "query_embedding": axis(0)}, "query"),
            ({"query": "x", "top_k": -1}, "top_k"),
            ({"query": "x", "top_k": 1001}, "top_k"),
            ({"query": "x", "threshold": -0.1}, "threshold"),
            ({"query": "x", "threshold": 1.1}, "threshold"),
            ({"query": "x", "threshold": math.nan}, "threshold"),
            ({"query": "x", "tags": [""]}, "tags[0]"),
        ],
        ids=str,
    )
    async def test_senseless_searches_are_refused(
        self, tenant: Tenant, fields: dict[str, Any], field: str
    ) -> None:
        check(await failure(find(tenant, **fields)), field)

    async def test_too_much_is_refused(self, tenant: Tenant) -> None:
        tags = [str(n) for n in range(65)]
        room = str(uuid4())
        for call, field in [
            (store(tenant, "x" * 32_769), "memory.content"),
            (store(tenant, "x", tags=tags), "memory.tags"),
            (store(tenant, "x", tags=["t" * 129]), "memory.tags[0]"),
            (store(tenant, "x", idempotency_key="k" * 257), "idempotency_key"),
            (find(tenant, "x", tags=tags), "tags"),
            (find(tenant, "x", conversation_ids=[room] * 101), "conversation_ids"),
        ]:
            check(await failure(call), field, "LIMIT_EXCEEDED")

    async def test_an_owner_and_a_conversation_are_refused(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        refused = await failure(store(tenant, CAT, conversation_id=room, session_id="s"))

        check(refused, "session_id")

    async def test_without_words_nothing_is_stored(self, tenant: Tenant) -> None:
        check(await failure(store(tenant, "")), "memory.content")
        check(await failure(store(tenant, " \n\t")), "memory.content")


class TestDeletedConversations:
    async def test_take_their_memories_out_and_bring_them_back(
        self, tenant: Tenant, storage: RunningStorage
    ) -> None:
        memory = await remembered(tenant, CAT)
        room = memory.conversation_id
        await indexed(tenant)

        await tenant.client.conversations.delete(room)
        at_once = await found_ids(tenant, CAT, freshness="SEARCH_FRESHNESS_EVENTUAL")
        hidden = await failure(got(tenant, memory.memory_id))
        changed = await failure(update(tenant, memory, "content"))
        gone = await failure(deleted(tenant, memory.memory_id))
        await indexed(tenant)
        mirrored = await storage.adapters.vectors.count(MemoryScope(UUID(tenant.tenant_id)))
        await tenant.client.conversations.restore(room)

        assert (at_once, mirrored, await listed(tenant)) == ([], 0, [memory])
        assert {f.reason for f in (hidden, changed, gone)} == {"RESOURCE_NOT_FOUND"}
        assert await found_ids(tenant, CAT, conversation_ids=[room]) == [memory.memory_id]


class TestMirror:
    async def test_verify_sees_lost_and_stray_memories(
        self, tenant: Tenant, storage: RunningStorage
    ) -> None:
        adapters, tenant_id = storage.adapters, UUID(tenant.tenant_id)
        memory = await remembered(tenant, CAT)
        await indexed(tenant)
        clean = await self.verified(storage)

        await adapters.vectors.delete_memories(tenant_id, [UUID(memory.memory_id)])
        lost = await self.verified(storage)
        vector = (await adapters.embedder.embed([CAT]))[0]
        stray = MemoryPoint(uuid4(), tenant_id, UUID(memory.conversation_id), vector)
        await adapters.vectors.upsert([stray])
        both = await self.verified(storage)

        assert lost == (clean[0] + 1, clean[1])
        assert both == (clean[0] + 1, clean[1] + 1)
        await adapters.vectors.delete_memories(tenant_id, [stray.memory_id])

    async def test_a_stray_point_of_anothers_memory_is_not_returned(
        self, tenant: Tenant, other_tenant: Tenant, storage: RunningStorage
    ) -> None:
        theirs = await remembered(other_tenant, CAT)
        await indexed(other_tenant)
        vector = (await storage.adapters.embedder.embed([CAT]))[0]
        poison = MemoryPoint(
            UUID(theirs.memory_id), UUID(tenant.tenant_id), UUID(theirs.conversation_id), vector
        )
        await storage.adapters.vectors.upsert([poison])

        assert await found_ids(tenant, CAT) == []

    @pytest.mark.parametrize(
        "condition", [{"tags": ["t"]}, {"agent_id": str(UUID(int=7))}, {"user_id": "bob"}], ids=str
    )
    async def test_what_the_mirror_says_wrongly_of_a_memory_is_not_believed(
        self, tenant: Tenant, storage: RunningStorage, condition: dict[str, Any]
    ) -> None:
        memory = await remembered(tenant, CAT)
        await indexed(tenant)
        agent_id = condition.get("agent_id")
        stale = MemoryPoint(
            UUID(memory.memory_id),
            UUID(tenant.tenant_id),
            UUID(memory.conversation_id),
            (await storage.adapters.embedder.embed([CAT]))[0],
            tags=tuple(condition.get("tags", ())),
            agent_id=UUID(agent_id) if agent_id else None,
            user_id=condition.get("user_id"),
        )
        await storage.adapters.vectors.upsert([stale])

        assert await found_ids(tenant, CAT) == [memory.memory_id]
        assert await found_ids(tenant, CAT, **condition) == []

    async def test_an_embedding_of_former_content_is_not_kept(
        self, tenant: Tenant, storage: RunningStorage
    ) -> None:
        memory = await remembered(tenant, CAT)
        await update(tenant, res.Memory(memory_id=memory.memory_id, content=DATABASE), "content")
        await indexed(tenant)
        outbox = PostgresOutbox(storage.adapters.database)
        tenant_id, memory_id = UUID(tenant.tenant_id), UUID(memory.memory_id)
        model = storage.adapters.embedder.model
        before = await outbox.get_indexable_memories(tenant_id, [memory_id], model)

        former = MemoryEmbedding(memory_id, version=1, embedding=b"former")
        await outbox.save_memory_embeddings(tenant_id, [former], model)

        assert await outbox.get_indexable_memories(tenant_id, [memory_id], model) == before
        assert before[memory_id].embedding

    async def verified(self, storage: RunningStorage) -> tuple[int, int]:
        report = await VerifyMirror(mirror_parts(storage.adapters))()
        return report.missing, report.extra
