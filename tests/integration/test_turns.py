"""StoreTurn: one event for each turn, one observation for each store."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids, listed, state
from tests.support.changing import delete, history, revert, store, texts
from tests.support.raw import Failure, failure
from tests.support.scratch import as_tenant
from tests.support.storage import RunningStorage, Tenant

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, error, system, tool_call, tool_result, user
from annals_common.ids import derived_uuid, uuid7
from annals_common.principal import Actor
from annals_local.postgres import LocalPostgres
from annals_storage.domain.changing import TurnStore
from annals_storage.domain.events import EventBody, EventType, NewEvent, Role
from annals_storage.postgres.turns import PostgresTurns

WRITERS = 64


def new_message(content: str) -> NewEvent:
    """A message of one token as handlers make it."""
    body = EventBody(EventType.MESSAGE, role=Role.USER, content=content)
    return NewEvent(event_id=uuid7(), body=body, payload_hash=b"", token_count=1)


def reason(refused: Failure) -> tuple[str, str]:
    return refused.code.name, refused.reason


class TestStoring:
    async def test_the_first_store_appends_the_turns_event(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, user("before"))

        stored = await store(tenant.raw, room, "turn 1", assistant("hello"))

        [_, event] = await listed(tenant, room)
        assert event == stored.event
        assert (event.seq, event.version, event.branch) == (2, 1, 1)
        assert (event.turn_id, event.turn_key) == ("turn 1", f"{room}:turn 1")
        assert (stored.created, stored.replayed, stored.observation_version) == (True, False, 1)
        assert not event.HasField("edit_time")
        now = await state(tenant.raw, room)
        assert (now.last_seq, now.event_count, now.message_count) == (2, 2, 2)

    async def test_a_further_store_becomes_the_content(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        first = await store(tenant.raw, room, "t", assistant("one", idempotency_key="1"))

        second = await store(
            tenant.raw, room, "t", assistant("two words", idempotency_key="2", model="m")
        )

        [event] = await listed(tenant, room)
        assert event == second.event
        assert (event.event_id, event.seq) == (first.event.event_id, 1)
        assert (event.message.content, event.model, event.version) == ("two words", "m", 2)
        assert (second.created, second.replayed, second.observation_version) == (False, False, 2)
        assert event.create_time == first.event.create_time == event.event_time
        assert event.edit_time.ToNanoseconds() > event.create_time.ToNanoseconds()

    async def test_counters_follow_the_snapshot(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", assistant("a rather long first answer of many words"))
        before = await state(tenant.raw, room)

        stored = await store(tenant.raw, room, "t", assistant("short"))

        now = await state(tenant.raw, room)
        assert (now.event_count, now.message_count, now.last_seq) == (1, 1, 1)
        assert now.token_count == stored.event.token_count < before.token_count
        assert now.version == before.version + 1

    async def test_nothing_of_the_former_content_stays(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        parent = ids(await append(tenant.raw, room, user("q")))[0]
        full = assistant(
            "x",
            model="m",
            provider_response_id="r",
            usage=res.Usage(input_tokens=1),
            parent_event_id=parent,
            metadata={"a": 1},
            status=res.EVENT_STATUS_PENDING,
        )
        full.event_time.FromJsonString("2020-01-01T00:00:00Z")
        await store(tenant.raw, room, "t", full)

        stored = await store(tenant.raw, room, "t", assistant("y"))

        event = stored.event
        assert (event.model, event.provider_response_id, event.parent_event_id) == ("", "", "")
        assert not event.HasField("usage")
        assert not event.HasField("metadata")
        assert event.status == res.EVENT_STATUS_COMPLETE
        assert event.event_time == event.create_time

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (tool_call("c", "t", "{}"), tool_call("c2", "t2", '{"a": 1}')),
            (system("a"), system("b")),
            (error("e", "a"), error("f", "b")),
        ],
        ids=["tool call", "system", "error"],
    )
    async def test_every_type_can_be_stored_again(
        self, tenant: Tenant, first: pb.NewEvent, second: pb.NewEvent
    ) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", first)

        stored = await store(tenant.raw, room, "t", second)

        kind = second.WhichOneof("body")
        assert getattr(stored.event, kind) == getattr(second, kind)

    async def test_a_result_takes_its_tools_name_from_the_call(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, tool_call("c1", "one"), tool_call("c2", "two"))
        first = await store(tenant.raw, room, "t", tool_result("c1", "r"))

        second = await store(tenant.raw, room, "t", tool_result("c2", "r"))

        names = [stored.event.tool_result.tool_name for stored in (first, second)]
        assert names == ["one", "two"]

    async def test_a_call_that_was_answered_keeps_its_id(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", tool_call("c1", "one"))
        await store(tenant.raw, room, "t", tool_call("c2", "one"))
        await append(tenant.raw, room, tool_result("c2", "r"))

        refused = await failure(store(tenant.raw, room, "t", tool_call("c3", "one")))
        again = await store(tenant.raw, room, "t", tool_call("c2", "two"))

        assert (refused.reason, refused.fields) == (
            "FIELD_INVALID",
            ("event.tool_call.tool_call_id",),
        )
        assert again.event.tool_call.tool_name == "two"

    async def test_a_turn_is_its_conversations_own(self, tenant: Tenant) -> None:
        rooms = [await empty_conversation(tenant) for _ in range(2)]

        stored = [await store(tenant.raw, room, "t", user("x")) for room in rooms]

        assert all(each.created for each in stored)

    async def test_what_is_stored_again_is_found_again(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", assistant("the walrus naps"))
        await store(tenant.raw, room, "t", assistant("the heron fishes"))

        found = await tenant.client.search.events(
            "heron", conversation_ids=[room], freshness="read_your_writes"
        )

        assert [hit.event.message.content for hit in found.hits] == ["the heron fishes"]

    async def test_the_newest_response_id_is_the_conversations(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        for response_id in ("r1", "r2"):
            await store(tenant.raw, room, "t", assistant("x", provider_response_id=response_id))
            assert (await state(tenant.raw, room)).last_response_id == response_id

        await store(tenant.raw, room, "t", assistant("x"))

        assert (await state(tenant.raw, room)).last_response_id == "r2"


class TestConversations:
    async def test_a_host_conversation_is_made_once(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        fields: dict[str, Any] = {
            "host_conversation_id": "host 1",
            "agent_id": agent.agent_id,
            "session_id": "s",
        }

        stored = [
            await store(tenant.raw, "", turn, user("x"), **fields) for turn in ("t1", "t1", "t2")
        ]

        [room] = {each.event.conversation_id for each in stored}
        tenant_bytes = UUID(tenant.tenant_id).bytes
        assert room == str(derived_uuid("host conversation", tenant_bytes, "host 1"))
        assert [each.event.seq for each in stored] == [1, 1, 2]
        now = await state(tenant.raw, room)
        assert (now.agent_id, now.session_id) == (agent.agent_id, "s")
        assert now.host_conversation_id == "host 1"

    async def test_a_host_conversation_may_have_been_created_before(self, tenant: Tenant) -> None:
        conversation = res.Conversation(host_conversation_id="mine")
        created = await tenant.raw.call(
            "CreateConversation",
            conversation_pb.CreateConversationRequest(conversation=conversation),
        )

        stored = await store(tenant.raw, "", "t", user("x"), host_conversation_id="mine")

        assert stored.event.conversation_id == created.conversation.conversation_id

    async def test_host_ids_of_tenants_do_not_meet(
        self, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        stored = [
            await store(each.raw, "", "t", user("x"), host_conversation_id="shared")
            for each in (tenant, other_tenant)
        ]

        assert all(each.created for each in stored)
        assert len({each.event.conversation_id for each in stored}) == 2

    async def test_without_ids_a_conversation_is_made(self, tenant: Tenant) -> None:
        stored = [await store(tenant.raw, "", "t", user("x"), session_id="s") for _ in range(2)]

        rooms = {each.event.conversation_id for each in stored}
        assert len(rooms) == 2
        assert {(await state(tenant.raw, room)).session_id for room in rooms} == {"s"}

    async def test_a_retry_finds_its_anonymous_conversation(self, tenant: Tenant) -> None:
        event = user("x", idempotency_key="k")

        stored = [await store(tenant.raw, "", "t", event) for _ in range(2)]

        assert stored[0].event == stored[1].event
        assert [each.replayed for each in stored] == [False, True]

    async def test_nothing_is_created_for_a_refused_store(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        refused = await failure(
            store(tenant.raw, "", "t", tool_result("none", "r"), host_conversation_id="h")
        )

        assert reason(refused) == ("FAILED_PRECONDITION", "TOOL_CALL_NOT_FOUND")
        query = "SELECT count(*) AS n FROM annals.conversations"
        assert as_tenant(postgres.app_url, tenant.tenant_id, query) == [{"n": 0}]


class TestRetries:
    async def test_a_retry_returns_the_result_of_that_store(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        events = [
            assistant(f"answer {n}", idempotency_key=f"k{n}", model=f"m{n}") for n in range(3)
        ]
        stored = [await store(tenant.raw, room, "t", event) for event in events]

        again = [await store(tenant.raw, room, "t", event) for event in events]

        assert [each.event for each in again] == [each.event for each in stored]
        assert [each.observation_version for each in again] == [1, 2, 3]
        assert [each.created for each in again] == [True, False, False]
        assert all(each.replayed for each in again)
        [event] = await listed(tenant, room)
        assert (event.version, event.message.content) == (3, "answer 2")

    async def test_a_key_with_another_payload_is_refused(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", user("one", idempotency_key="k"))

        refused = [
            await failure(store(tenant.raw, room, "t", user("two", idempotency_key="k"))),
            await failure(store(tenant.raw, room, "u", user("one", idempotency_key="k"))),
            await failure(append(tenant.raw, room, user("one", idempotency_key="k"))),
        ]

        assert {reason(each) for each in refused} == {
            ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
        }
        [event] = await listed(tenant, room)
        assert (event.version, event.message.content) == (1, "one")

    async def test_without_a_key_every_call_is_a_further_store(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        stored = [await store(tenant.raw, room, "t", user("same")) for _ in range(3)]

        assert [each.observation_version for each in stored] == [1, 2, 3]

    async def test_a_retry_is_answered_after_the_conversation_ended(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        event = user("x", idempotency_key="k")
        await store(tenant.raw, room, "t", event)
        await tenant.client.conversations.end(room)

        again = await store(tenant.raw, room, "t", event)

        assert again.replayed


class TestReverts:
    async def test_an_abandoned_turn_is_superseded(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        kept = ids(await append(tenant.raw, room, user("question")))[0]
        old = await store(tenant.raw, room, "t", assistant("old answer"))
        branch = await revert(tenant.raw, room, kept)

        new = await store(tenant.raw, room, "t", assistant("new answer", idempotency_key="k"))

        assert new.created
        assert (new.event.seq, new.event.branch) == (3, branch)
        assert new.superseded_event_id == old.event.event_id
        read = await tenant.client.events.get(old.event.event_id)
        assert read.superseded_by_event_id == new.event.event_id
        assert [event.message.content for event in await listed(tenant, room)] == [
            "question",
            "new answer",
        ]
        query = "SELECT type, source_id, target_id FROM annals.relationships"
        assert as_tenant(postgres.app_url, tenant.tenant_id, query) == [
            {
                "type": "supersedes",
                "source_id": new.event.event_id,
                "target_id": old.event.event_id,
            }
        ]
        again = await store(tenant.raw, room, "t", assistant("new answer", idempotency_key="k"))
        assert again.replayed
        assert (again.event, again.superseded_event_id) == (new.event, old.event.event_id)

    async def test_a_turn_still_in_view_is_stored_again(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        first = await store(tenant.raw, room, "t", assistant("kept"))
        await append(tenant.raw, room, user("left behind"))
        await revert(tenant.raw, room, first.event.event_id)

        again = await store(tenant.raw, room, "t", assistant("changed"))

        assert not again.created
        assert (again.event.event_id, again.event.branch) == (first.event.event_id, 1)
        assert again.superseded_event_id == ""

    async def test_a_selected_branch_gets_its_own_event_of_the_turn(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        old = await store(tenant.raw, room, "t", assistant("on the trunk"))
        await revert(tenant.raw, room)
        new = await store(tenant.raw, room, "t", assistant("on the branch"))
        select = pb.SelectBranchRequest(conversation_id=room, branch=1)
        await tenant.raw.call("SelectBranch", select)

        again = await store(tenant.raw, room, "t", assistant("on the trunk again"))

        assert new.event.event_id != old.event.event_id
        assert (again.event.event_id, again.observation_version) == (old.event.event_id, 2)

    async def test_reverting_again_and_again_makes_a_chain(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        stored = []
        for n in range(4):
            stored.append(await store(tenant.raw, room, "t", assistant(f"try {n}")))
            await revert(tenant.raw, room)

        superseded = [each.superseded_event_id for each in stored]
        assert superseded == ["", *(each.event.event_id for each in stored[:-1])]
        assert [each.event.branch for each in stored] == [1, 2, 3, 4]


class TestConcurrency:
    async def test_stores_of_one_turn_make_versions_without_gaps(self, tenant: Tenant) -> None:
        stored = await asyncio.gather(
            *(
                store(
                    tenant.raw,
                    "",
                    "t",
                    assistant(f"answer {n}", idempotency_key=f"k{n}"),
                    host_conversation_id="busy",
                )
                for n in range(WRITERS)
            )
        )

        [event_id] = {each.event.event_id for each in stored}
        by_version = sorted(stored, key=lambda each: each.observation_version)
        assert [each.observation_version for each in by_version] == list(range(1, WRITERS + 1))
        assert sum(each.created for each in stored) == 1
        seen = await history(tenant.raw, event_id)
        assert [each.version for each in seen] == list(range(WRITERS, 0, -1))
        assert texts(seen)[::-1] == [each.event.message.content for each in by_version]
        now = await state(tenant.raw, stored[0].event.conversation_id)
        assert (now.event_count, now.message_count, now.last_seq) == (1, 1, 1)
        assert now.token_count == by_version[-1].event.token_count
        assert now.version == WRITERS + 1

    async def test_several_processes_make_versions_without_gaps(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        """What keeps them apart is PostgreSQL: here nothing in the process does."""
        turns = PostgresTurns(storage.adapters.database)
        tenant_id, room = UUID(tenant.tenant_id), uuid4()

        stored = await asyncio.gather(
            *(
                turns.store(
                    TurnStore(
                        tenant_id=tenant_id,
                        conversation_id=room,
                        turn_id=f"t{n % 2}",
                        event=new_message(f"answer {n}"),
                        payload_hash=b"",
                        actor=Actor(),
                        creates=True,
                        host_id="h",
                    )
                )
                for n in range(WRITERS)
            )
        )

        versions = sorted((each.event.turn_id, each.observation_version) for each in stored)
        expected = range(1, WRITERS // 2 + 1)
        assert versions == [(turn, version) for turn in ("t0", "t1") for version in expected]
        now = await state(tenant.raw, str(room))
        assert (now.event_count, now.last_seq, now.token_count) == (2, 2, 2)

    async def test_retries_at_the_same_time_store_once(self, tenant: Tenant) -> None:
        event = user("x", idempotency_key="k")

        stored = await asyncio.gather(*(store(tenant.raw, "", "t", event) for _ in range(WRITERS)))

        assert sum(not each.replayed for each in stored) == 1
        assert len({each.event.event_id for each in stored}) == 1
        assert len(await history(tenant.raw, stored[0].event.event_id)) == 1

    async def test_turns_and_appends_share_one_line_of_seqs(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        await asyncio.gather(
            *(store(tenant.raw, room, f"t{n % 8}", user(f"turn {n}")) for n in range(WRITERS)),
            *(append(tenant.raw, room, user(f"event {n}")) for n in range(WRITERS)),
        )

        events = await listed(tenant, room)
        assert [event.seq for event in events] == list(range(1, WRITERS + 9))
        now = await state(tenant.raw, room)
        assert now.event_count == now.message_count == WRITERS + 8
        assert now.token_count == sum(event.token_count for event in events)


class TestRefusals:
    async def test_a_deleted_turn_is_refused(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        stored = await store(tenant.raw, room, "t", user("x"))
        await delete(tenant.raw, stored.event.event_id)

        refused = await failure(store(tenant.raw, room, "t", user("y")))

        assert reason(refused) == ("FAILED_PRECONDITION", "EVENT_DELETED")

    @pytest.mark.parametrize("method", ["EndConversation", "ArchiveConversation"])
    async def test_a_conversation_that_is_over_takes_no_turns(
        self, tenant: Tenant, method: str
    ) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", user("x"))
        request = getattr(conversation_pb, f"{method}Request")
        await tenant.raw.call(method, request(conversation_id=room))

        refused = [await failure(store(tenant.raw, room, turn, user("y"))) for turn in ("t", "new")]

        assert {reason(each) for each in refused} == {
            ("FAILED_PRECONDITION", "CONVERSATION_NOT_ACTIVE")
        }

    async def test_a_deleted_conversation_is_not_found(self, tenant: Tenant) -> None:
        stored = await store(tenant.raw, "", "t", user("x"), host_conversation_id="h")
        room = stored.event.conversation_id
        await tenant.client.conversations.delete(room)

        refused = [
            await failure(store(tenant.raw, room, "t", user("x"))),
            await failure(store(tenant.raw, "", "t", user("x"), host_conversation_id="h")),
            await failure(store(tenant.raw, str(uuid4()), "t", user("x"))),
        ]

        assert {reason(each) for each in refused} == {("NOT_FOUND", "RESOURCE_NOT_FOUND")}

    async def test_the_type_of_a_turn_stays(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", user("x"))

        refused = await failure(store(tenant.raw, room, "t", system("y")))

        assert reason(refused) == ("INVALID_ARGUMENT", "FIELD_INVALID")
        assert refused.fields == ("event.body",)

    @pytest.mark.parametrize("turn_id", ["", "a\nb", "a\x7fb", "a\x85b", "\x00"])
    async def test_turn_ids_are_one_line_of_text(self, tenant: Tenant, turn_id: str) -> None:
        refused = await failure(store(tenant.raw, "", turn_id, user("x")))

        assert reason(refused) == ("INVALID_ARGUMENT", "FIELD_INVALID")
        assert refused.fields == ("turn_id",)

    @pytest.mark.parametrize(
        ("field", "value"),
        [("host_conversation_id", "h"), ("agent_id", str(UUID(int=7))), ("session_id", "s")],
    )
    async def test_a_known_conversation_is_not_described(
        self, tenant: Tenant, field: str, value: str
    ) -> None:
        room = await empty_conversation(tenant)

        refused = await failure(store(tenant.raw, room, "t", user("x"), **{field: value}))

        assert (reason(refused), refused.fields) == (
            ("INVALID_ARGUMENT", "FIELD_INVALID"),
            (field,),
        )

    async def test_the_agent_of_a_new_conversation_must_exist(self, tenant: Tenant) -> None:
        refused = await failure(store(tenant.raw, "", "t", user("x"), agent_id=str(uuid4())))

        assert reason(refused) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")
        assert dict(refused.metadata)["resource"] == "agent"

    async def test_an_event_id_is_the_turns_own(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        mine, other = str(uuid4()), str(uuid4())
        first = await store(tenant.raw, room, "t", user("x", event_id=mine))
        again = await store(tenant.raw, room, "t", user("y", event_id=mine))

        refused = await failure(store(tenant.raw, room, "t", user("z", event_id=other)))
        taken = await failure(store(tenant.raw, room, "u", user("z", event_id=mine)))

        assert first.event.event_id == again.event.event_id == mine
        assert refused.fields == ("event.event_id",)
        assert reason(taken) == ("ALREADY_EXISTS", "RESOURCE_ALREADY_EXISTS")

    async def test_a_parent_stands_before_its_turn(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        elsewhere = ids(await append(tenant.raw, "", user("x")))[0]
        stored = await store(tenant.raw, room, "t", user("x"))
        after = ids(await append(tenant.raw, room, user("after")))[0]

        refused = [
            await failure(store(tenant.raw, room, turn, user("y", parent_event_id=parent)))
            for turn, parent in [
                ("t", stored.event.event_id),
                ("t", after),
                ("t", elsewhere),
                ("new", elsewhere),
                ("new", str(uuid4())),
            ]
        ]

        assert {(reason(each), each.fields) for each in refused} == {
            (("INVALID_ARGUMENT", "FIELD_INVALID"), ("event.parent_event_id",))
        }

    async def test_a_result_needs_its_call(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await append(tenant.raw, room, tool_call("c", "tool"))
        await store(tenant.raw, room, "t", tool_result("c", "r"))

        refused = [
            await failure(store(tenant.raw, room, turn, tool_result("none", "r")))
            for turn in ("t", "new")
        ]

        assert {(reason(each), each.fields) for each in refused} == {
            (
                ("FAILED_PRECONDITION", "TOOL_CALL_NOT_FOUND"),
                ("event.tool_result.tool_call_id",),
            )
        }
