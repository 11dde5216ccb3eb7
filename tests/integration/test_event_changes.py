"""EditEvent, DeleteEvent, RestoreEvent: new facts about an event, never in place of old ones."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids, listed, state
from tests.support.changing import delete, edit, history, restore, store
from tests.support.locks import waiting_for_lock
from tests.support.raw import Failure, failure, outcome
from tests.support.scratch import as_tenant
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, system, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.postgres.database import sql
from annals_storage.postgres.outbox import PostgresOutbox

WRITERS = 64


def reason(refused: Failure) -> tuple[str, str]:
    return refused.code.name, refused.reason


async def one_event(tenant: Tenant, event: pb.NewEvent) -> tuple[str, str]:
    """A conversation with one event; return both ids."""
    stored = await append(tenant.raw, "", event)
    return stored.conversation_id, ids(stored)[0]


async def get(tenant: Tenant, event_id: str) -> res.Event:
    event: res.Event = await tenant.client.events.get(event_id)
    return event


def usage_rows(postgres: LocalPostgres, tenant: Tenant) -> list[tuple[Any, ...]]:
    query = "SELECT * FROM annals.usage_daily ORDER BY model"
    names = ("model", "event_count", "input_tokens", "output_tokens", "cached_input_tokens")
    rows = as_tenant(postgres.app_url, tenant.tenant_id, query)
    return [tuple(row[name] for name in names) for row in rows]


class TestEditing:
    async def test_an_edit_replaces_the_body(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("hello there", model="m", metadata={"a": 1}))
        before = await state(tenant.raw, room)

        edited = await edit(tenant.raw, event_id, user("bye"))

        event = await get(tenant, event_id)
        assert event == edited.event
        assert event.message.content == "bye"
        assert (event.version, event.model, event.metadata["a"]) == (2, "m", 1)
        assert event.edit_time.ToNanoseconds() > event.create_time.ToNanoseconds()
        now = await state(tenant.raw, room)
        assert (now.event_count, now.message_count, now.last_seq) == (1, 1, 1)
        assert now.token_count == event.token_count < before.token_count
        assert now.version == before.version + 1
        assert now.last_event_time == before.last_event_time

    async def test_only_what_is_named_changes(self, tenant: Tenant) -> None:
        sent = assistant("x", model="old", provider_response_id="r1", metadata={"a": 1})
        sent.status = res.EVENT_STATUS_PENDING
        _, event_id = await one_event(tenant, sent)
        change = assistant(
            "ignored",
            model="new",
            provider_response_id="r2",
            usage=res.Usage(output_tokens=3),
            status=res.EVENT_STATUS_FAILED,
        )

        event = (await edit(tenant.raw, event_id, change, "status", "usage")).event

        assert (event.status, event.usage.output_tokens) == (res.EVENT_STATUS_FAILED, 3)
        assert (event.message.content, event.model) == ("x", "old")
        assert (event.provider_response_id, event.metadata["a"]) == ("r1", 1)

    async def test_what_is_named_and_empty_is_cleared(self, tenant: Tenant) -> None:
        sent = assistant("x", model="m", provider_response_id="r", usage=res.Usage(input_tokens=1))
        sent.metadata.update({"a": 1})
        sent.status = res.EVENT_STATUS_PENDING
        _, event_id = await one_event(tenant, sent)
        names = ("model", "provider_response_id", "usage", "metadata", "status")

        event = (await edit(tenant.raw, event_id, pb.NewEvent(), *names)).event

        assert (event.model, event.provider_response_id) == ("", "")
        assert not event.HasField("usage")
        assert not event.HasField("metadata")
        assert event.status == res.EVENT_STATUS_COMPLETE
        assert event.message.content == "x"

    async def test_a_pending_answer_is_completed(self, tenant: Tenant) -> None:
        pending = assistant("", status=res.EVENT_STATUS_PENDING)
        room, event_id = await one_event(tenant, pending)
        whole = assistant("the answer", provider_response_id="resp_1")

        edited = await edit(tenant.raw, event_id, whole, "body", "status", "provider_response_id")

        assert edited.event.status == res.EVENT_STATUS_COMPLETE
        assert (await state(tenant.raw, room)).last_response_id == "resp_1"

    async def test_an_edited_result_takes_its_tools_name_from_the_call(
        self, tenant: Tenant
    ) -> None:
        named = tool_result("c1", "r")
        named.tool_result.tool_name = "its own"
        stored = await append(tenant.raw, "", tool_call("c1", "one"), named)

        edited = await edit(tenant.raw, ids(stored)[1], tool_result("c1", "changed"))

        assert edited.event.tool_result.tool_name == "one"

    async def test_an_edit_is_searched_instead_of_what_was(self, tenant: Tenant) -> None:
        long = "The quokka sleeps under a bush. " * 60
        room, event_id = await one_event(tenant, user(long))
        freshness: dict[str, Any] = {"conversation_ids": [room], "freshness": "read_your_writes"}
        assert (await tenant.client.search.events("quokka", **freshness)).hits

        await edit(tenant.raw, event_id, user("A heron."))

        found = await tenant.client.search.events("heron", **freshness)
        assert [hit.event.message.content for hit in found.hits] == ["A heron."]
        report = await tenant.client.search.events("quokka bush", mode="lexical", **freshness)
        assert not report.hits

    async def test_the_mirror_holds_nothing_of_what_was(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        outbox, tenant_id = PostgresOutbox(storage.adapters.database), UUID(tenant.tenant_id)
        _, event_id = await one_event(tenant, user("The quokka sleeps under a bush. " * 200))
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        assert len(await outbox.list_chunks(tenant_id, after=None, limit=100)) > 3

        await edit(tenant.raw, event_id, user("A heron."))

        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        stored = await outbox.list_chunks(tenant_id, after=None, limit=100)
        mirrored = await storage.adapters.vectors.list_chunks(tenant_id, after=None, limit=100)
        assert len(stored) == 1
        assert mirrored == stored

    async def test_an_ended_conversations_events_can_be_edited(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("x"))
        await tenant.client.conversations.end(room)

        edited = await edit(tenant.raw, event_id, user("y"))

        assert edited.event.message.content == "y"


class TestEditsAreSafe:
    async def test_a_retry_returns_the_first_result(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))
        first = await edit(tenant.raw, event_id, user("one", idempotency_key="k"))
        await edit(tenant.raw, event_id, user("two"))

        again = await edit(tenant.raw, event_id, user("one", idempotency_key="k"))

        assert (first.replayed, again.replayed) == (False, True)
        assert again.event == first.event
        assert (await get(tenant, event_id)).message.content == "two"

    async def test_a_key_is_for_one_payload(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("x", idempotency_key="a"), user("y"))
        first, second = ids(stored)
        await edit(tenant.raw, first, user("one", idempotency_key="k"))

        refused = [
            await failure(call)
            for call in [
                edit(tenant.raw, first, user("two", idempotency_key="k")),
                edit(tenant.raw, second, user("one", idempotency_key="k")),
                edit(tenant.raw, first, user("one", idempotency_key="k"), "body", "model"),
                edit(tenant.raw, first, user("x", idempotency_key="a")),
                store(tenant.raw, stored.conversation_id, "t", user("one", idempotency_key="k")),
            ]
        ]

        assert {reason(each) for each in refused} == {
            ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
        }

    async def test_the_version_may_be_a_condition(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))
        keyed = user("y", idempotency_key="k")
        await edit(tenant.raw, event_id, keyed, expected_version=1)

        refused = await failure(edit(tenant.raw, event_id, user("z"), expected_version=1))
        retried = await edit(tenant.raw, event_id, keyed, expected_version=1)

        assert reason(refused) == ("ABORTED", "VERSION_MISMATCH")
        assert dict(refused.metadata) == {"expected_version": "1", "version": "2"}
        assert retried.replayed

    async def test_concurrent_edits_make_versions_without_gaps(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("x"))

        edited = await asyncio.gather(
            *(edit(tenant.raw, event_id, user(f"edit {n}")) for n in range(WRITERS))
        )

        versions = sorted(each.event.version for each in edited)
        assert versions == list(range(2, WRITERS + 2))
        contents = {each.event.version: each.event.message.content for each in edited}
        seen = {o.version: o.event.message.content for o in await history(tenant.raw, event_id)}
        assert seen == {1: "x", **contents}
        event = await get(tenant, event_id)
        assert (event.version, event.message.content) == (WRITERS + 1, contents[WRITERS + 1])
        assert (await state(tenant.raw, room)).token_count == event.token_count

    async def test_one_of_many_wins_a_version(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))

        outcomes = await asyncio.gather(
            *(
                outcome(edit(tenant.raw, event_id, user(f"{n}"), expected_version=1))
                for n in range(16)
            )
        )

        lost = [each for each in outcomes if isinstance(each, Failure)]
        assert len(lost) == 15
        assert {each.reason for each in lost} == {"VERSION_MISMATCH"}


class TestRefusedEdits:
    async def test_the_type_stays(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))

        refused = await failure(edit(tenant.raw, event_id, system("y")))

        assert (reason(refused), refused.fields) == (
            ("INVALID_ARGUMENT", "FIELD_INVALID"),
            ("event.body",),
        )

    async def test_a_call_and_its_result_stay_together(self, tenant: Tenant) -> None:
        calls = tool_call("c1", "one"), tool_call("c2", "two")
        stored = await append(tenant.raw, "", *calls, tool_result("c1", "r"))
        call, _, result = ids(stored)

        refused = [
            await failure(edit(tenant.raw, call, tool_call("c3", "one"))),
            await failure(edit(tenant.raw, result, tool_result("c2", "r"))),
            await failure(edit(tenant.raw, result, tool_result("c3", "r"))),
        ]
        await edit(tenant.raw, call, tool_call("c1", "renamed"))

        assert {reason(each) for each in refused} == {("INVALID_ARGUMENT", "FIELD_INVALID")}
        assert [each.fields for each in refused] == [
            ("event.tool_call.tool_call_id",),
            ("event.tool_result.tool_call_id",),
            ("event.tool_result.tool_call_id",),
        ]
        assert "cannot be changed by an edit" in refused[0].message
        assert (await get(tenant, call)).tool_call.tool_name == "renamed"
        assert (await get(tenant, result)).version == 1

    async def test_an_edit_must_change_something(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))

        refused = [
            await failure(edit(tenant.raw, event_id, pb.NewEvent())),
            await failure(edit(tenant.raw, event_id, pb.NewEvent(), "body")),
        ]

        assert {each.fields for each in refused} == {("event.body",)}

    async def test_only_known_fields_are_edited(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))

        unknown = await failure(edit(tenant.raw, event_id, user("y"), "body", "seq"))
        many = await failure(edit(tenant.raw, event_id, user("y"), *["body"] * 101))

        assert (reason(unknown), unknown.fields) == (
            ("INVALID_ARGUMENT", "FIELD_INVALID"),
            ("update_fields[1]",),
        )
        assert reason(many) == ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")

    @pytest.mark.parametrize("field", ["event_id", "parent_event_id", "event_time"])
    async def test_what_an_edit_cannot_change_is_refused(self, tenant: Tenant, field: str) -> None:
        _, event_id = await one_event(tenant, user("x"))
        change = user("y")
        if field == "event_time":
            change.event_time.GetCurrentTime()
        else:
            setattr(change, field, str(uuid4()))

        refused = await failure(edit(tenant.raw, event_id, change))

        assert (reason(refused), refused.fields) == (
            ("INVALID_ARGUMENT", "FIELD_INVALID"),
            (f"event.{field}",),
        )

    async def test_a_deleted_event_must_be_restored_first(self, tenant: Tenant) -> None:
        _, event_id = await one_event(tenant, user("x"))
        await delete(tenant.raw, event_id)

        refused = await failure(edit(tenant.raw, event_id, user("y")))
        await restore(tenant.raw, event_id)
        edited = await edit(tenant.raw, event_id, user("y"))

        assert reason(refused) == ("FAILED_PRECONDITION", "EVENT_DELETED")
        assert edited.event.version == 4

    async def test_nothing_is_stored_of_a_refused_edit(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room, event_id = await one_event(tenant, user("x", usage=res.Usage(input_tokens=1)))
        before = await state(tenant.raw, room), usage_rows(postgres, tenant)
        await failure(edit(tenant.raw, event_id, system("y")))
        await failure(edit(tenant.raw, event_id, user("y"), expected_version=7))

        assert (await state(tenant.raw, room), usage_rows(postgres, tenant)) == before
        assert len(await history(tenant.raw, event_id)) == 1

    @pytest.mark.parametrize("change", ["EditEvent", "DeleteEvent", "RestoreEvent"])
    async def test_events_of_deleted_conversations_are_not_found(
        self, tenant: Tenant, change: str
    ) -> None:
        room, event_id = await one_event(tenant, user("x"))
        await tenant.client.conversations.delete(room)
        request = getattr(pb, f"{change}Request")(event_id=event_id)
        if change == "EditEvent":
            request.event.CopyFrom(user("y"))

        refused = await failure(tenant.raw.call(change, request))

        assert reason(refused) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")


class TestErased:
    @pytest.mark.parametrize("change", ["EditEvent", "DeleteEvent", "RestoreEvent"])
    async def test_an_erased_event_never_changes(
        self, tenant: Tenant, postgres: LocalPostgres, change: str
    ) -> None:
        _, event_id = await one_event(tenant, user("x"))
        as_tenant(
            postgres.app_url,
            tenant.tenant_id,
            "UPDATE annals.events SET erased_at = now(), content = NULL, role = NULL",
        )
        request = getattr(pb, f"{change}Request")(event_id=event_id)
        if change == "EditEvent":
            request.event.CopyFrom(user("y"))

        refused = await failure(tenant.raw.call(change, request))

        assert reason(refused) == ("FAILED_PRECONDITION", "EVENT_ERASED")


class TestCold:
    async def test_words_that_cannot_be_brought_back_are_not_overwritten(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        """The hook of cold storage: no next version is made over words that are elsewhere."""
        _, event_id = await one_event(tenant, user("x"))
        as_tenant(
            postgres.app_url,
            tenant.tenant_id,
            "UPDATE annals.events SET cold_segment_id = gen_random_uuid(), content = NULL",
        )

        refused = [
            await failure(edit(tenant.raw, event_id, user("y"))),
            await failure(delete(tenant.raw, event_id)),
        ]

        assert {each.reason for each in refused} <= {"DEPENDENCY_UNAVAILABLE", "NOT_CONFIGURED"}
        [row] = as_tenant(postgres.app_url, tenant.tenant_id, "SELECT * FROM annals.events")
        assert (row["version"], row["deleted_at"]) == (1, None)


class TestDeleting:
    async def test_a_deleted_event_is_hidden_until_restored(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        stored = await append(tenant.raw, room, user("one"), assistant("two"), user("three"))
        before = await state(tenant.raw, room)
        event_id = ids(stored)[1]

        deleted = await delete(tenant.raw, event_id)

        assert deleted.HasField("delete_time")
        assert (deleted.version, deleted.message.content) == (2, "two")
        assert not deleted.HasField("edit_time")
        assert [event.seq for event in await listed(tenant, room)] == [1, 3]
        now = await state(tenant.raw, room)
        assert (now.event_count, now.message_count, now.last_seq) == (2, 2, 3)
        assert now.token_count == before.token_count - deleted.token_count
        assert now.version == before.version + 1

        restored = await restore(tenant.raw, event_id)

        assert not restored.HasField("delete_time")
        assert restored.version == 3
        assert [event.seq for event in await listed(tenant, room)] == [1, 2, 3]
        after = await state(tenant.raw, room)
        assert (after.event_count, after.message_count) == (3, 3)
        assert after.token_count == before.token_count

    async def test_once_is_enough(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, tool_call("c", "t"))

        restored = await restore(tenant.raw, event_id)
        deleted = [await delete(tenant.raw, event_id) for _ in range(3)]
        again = [await restore(tenant.raw, event_id) for _ in range(3)]

        assert restored.version == 1
        assert [event.version for event in deleted] == [2, 2, 2]
        assert len({event.delete_time.ToNanoseconds() for event in deleted}) == 1
        assert [event.version for event in again] == [3, 3, 3]
        now = await state(tenant.raw, room)
        assert (now.event_count, now.message_count) == (1, 0)

    async def test_concurrent_deletions_count_once(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("x"))

        deleted = await asyncio.gather(*(delete(tenant.raw, event_id) for _ in range(WRITERS)))

        assert {event.version for event in deleted} == {2}
        now = await state(tenant.raw, room)
        assert (now.event_count, now.message_count, now.token_count) == (0, 0, 0)
        assert len(await history(tenant.raw, event_id)) == 2

    async def test_a_deletion_waits_for_the_change_before_it(
        self, storage: RunningStorage, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        """As when another process is at it: what it commits is what the next one goes by."""
        room, event_id = await one_event(tenant, user("x"))
        params = {"tenant_id": UUID(tenant.tenant_id), "event_id": UUID(event_id), "deleted": True}
        params |= {"api_key_id": None, "user_id": None, "session_id": None}

        async with storage.adapters.database.transaction(UUID(tenant.tenant_id)) as other:
            await other.run(sql("lock_event_conversation"), params)
            await other.run(sql("set_event_deleted"), params)
            waiting = asyncio.create_task(delete(tenant.raw, event_id))
            await eventually(
                lambda: waiting_for_lock(postgres, "lock_event_conversation"),
                lambda count: count == 1,
            )
        deleted = await waiting

        assert deleted.version == 2
        assert (await state(tenant.raw, room)).event_count == 0
        assert len(await history(tenant.raw, event_id)) == 2

    async def test_a_deleted_event_is_not_found_by_search(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("the axolotl smiles"))
        query: dict[str, Any] = {"conversation_ids": [room], "freshness": "read_your_writes"}
        assert (await tenant.client.search.events("axolotl", **query)).hits

        await delete(tenant.raw, event_id)
        gone = await tenant.client.search.events("axolotl", **query)
        await restore(tenant.raw, event_id)
        back = await tenant.client.search.events("axolotl", **query)

        assert (len(gone.hits), len(back.hits)) == (0, 1)

    async def test_a_deleted_call_still_names_its_tool(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, tool_call("c", "tool"))
        await delete(tenant.raw, event_id)

        stored = await append(tenant.raw, room, tool_result("c", "r"))

        assert (await get(tenant, ids(stored)[0])).tool_result.tool_name == "tool"


class TestUsage:
    async def test_appends_add_up(self, tenant: Tenant, postgres: LocalPostgres) -> None:
        room = await empty_conversation(tenant)
        usage = res.Usage(input_tokens=10, output_tokens=2, cached_input_tokens=1)
        events = [
            assistant("a", model="m", usage=usage, idempotency_key="k", event_id=str(uuid4())),
            assistant("b", model="m", usage=usage),
            assistant("c", usage=usage),
            assistant("d", model="n"),
        ]
        await append(tenant.raw, room, *events)
        await append(tenant.raw, room, assistant("e", model="m", usage=usage))
        await append(tenant.raw, room, events[0])

        assert usage_rows(postgres, tenant) == [("", 1, 10, 2, 1), ("m", 3, 30, 6, 3)]

    async def test_changes_move_the_difference(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        first = assistant("a", model="m", usage=res.Usage(input_tokens=10, output_tokens=5))
        stored = await store(tenant.raw, room, "t", first)
        event_id = stored.event.event_id
        assert usage_rows(postgres, tenant) == [("m", 1, 10, 5, 0)]

        fewer = assistant("b", model="m", usage=res.Usage(input_tokens=4, output_tokens=9))
        await store(tenant.raw, room, "t", fewer)
        assert usage_rows(postgres, tenant) == [("m", 1, 4, 9, 0)]

        await edit(tenant.raw, event_id, pb.NewEvent(model="n"), "model")
        assert usage_rows(postgres, tenant) == [("n", 1, 4, 9, 0)]

        await delete(tenant.raw, event_id)
        assert usage_rows(postgres, tenant) == [("n", 1, 4, 9, 0)]
        await restore(tenant.raw, event_id)

        await edit(tenant.raw, event_id, pb.NewEvent(), "usage")
        assert usage_rows(postgres, tenant) == []

    async def test_usage_beyond_all_bounds_is_capped(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await empty_conversation(tenant)
        events = [assistant("x", usage=res.Usage(input_tokens=2**53)) for _ in range(1000)]

        for _ in range(2):
            await append(tenant.raw, room, *events)

        assert usage_rows(postgres, tenant) == [("", 2000, 2**63 - 1, 0, 0)]


class TestAppendsAround:
    async def test_a_retry_of_an_append_is_answered_as_before_an_edit(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        keyed, request_id = user("some words", idempotency_key="k"), str(uuid4())
        first = await append(tenant.raw, room, keyed, request_id=request_id)
        for text in ("a good many more words than before", "x"):
            await edit(tenant.raw, ids(first)[0], user(text))

        again = [
            await append(tenant.raw, room, keyed),
            await append(tenant.raw, room, keyed, request_id=request_id),
        ]

        first.events[0].replayed = True
        assert [each.events[0] for each in again] == [first.events[0]] * 2

    async def test_status_is_kept_and_hashed(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        pending = assistant("x", idempotency_key="k", status=res.EVENT_STATUS_PENDING)
        stored = await append(tenant.raw, room, pending)

        refused = await failure(append(tenant.raw, room, assistant("x", idempotency_key="k")))
        complete = assistant("y", idempotency_key="l", status=res.EVENT_STATUS_COMPLETE)
        first = await append(tenant.raw, room, complete)
        again = await append(tenant.raw, room, assistant("y", idempotency_key="l"))

        assert (await get(tenant, ids(stored)[0])).status == res.EVENT_STATUS_PENDING
        assert reason(refused) == ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
        assert ids(first) == ids(again)

    async def test_the_newest_response_id_is_the_conversations(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw,
            "",
            assistant("a", provider_response_id="r1"),
            assistant("b", provider_response_id="r2"),
            user("c"),
        )
        assert (await state(tenant.raw, stored.conversation_id)).last_response_id == "r2"

        await append(tenant.raw, stored.conversation_id, user("d"))

        assert (await state(tenant.raw, stored.conversation_id)).last_response_id == "r2"

    async def test_a_branch_can_be_named(self, tenant: Tenant) -> None:
        room, event_id = await one_event(tenant, user("root"))
        opened = await tenant.raw.call(
            "CreateBranch", pb.CreateBranchRequest(conversation_id=room, event_id=event_id)
        )
        request_id = str(uuid4())
        call: dict[str, Any] = {"request_id": request_id, "branch": opened.branch.branch}

        there = await append(tenant.raw, room, user("there"), **call)
        here = await append(tenant.raw, room, user("here"))
        again = await append(tenant.raw, room, user("there"), **call)
        refused = await failure(
            append(tenant.raw, room, user("there"), request_id=request_id, branch=1)
        )
        missing = await failure(append(tenant.raw, room, user("x"), branch=77))
        negative = await failure(append(tenant.raw, room, user("x"), branch=-1))

        assert (await get(tenant, ids(there)[0])).branch == 2
        assert (await get(tenant, ids(here)[0])).branch == 1
        assert ids(again) == ids(there)
        assert reason(refused) == ("FAILED_PRECONDITION", "IDEMPOTENCY_KEY_REUSED")
        assert reason(missing) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")
        assert dict(missing.metadata)["resource"] == "branch"
        assert negative.fields == ("branch",)

    async def test_a_result_may_answer_a_call_on_another_branch(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("q"), tool_call("c", "tool"))
        room = stored.conversation_id
        revert = pb.RevertToEventRequest(conversation_id=room, event_id=ids(stored)[0])
        await tenant.raw.call("RevertToEvent", revert)

        answered = await append(tenant.raw, room, tool_result("c", "r"))

        event = await get(tenant, ids(answered)[0])
        assert (event.branch, event.tool_result.tool_name) == (2, "tool")
