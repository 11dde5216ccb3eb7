"""ListObservations: everything an event ever was, who made it so, and when."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, blank, empty_conversation, ids
from tests.support.changing import delete, edit, history, restore, revert, store, texts
from tests.support.raw import failure
from tests.support.scratch import as_tenant
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, error, system, tool_call, tool_result, user
from annals_local.postgres import LocalPostgres

KIB = 1024
STORE, EDIT = pb.OBSERVATION_KIND_STORE, pb.OBSERVATION_KIND_EDIT
DELETE, RESTORE = pb.OBSERVATION_KIND_DELETE, pb.OBSERVATION_KIND_RESTORE


async def test_every_change_is_seen_newest_first(tenant: Tenant) -> None:
    room = await empty_conversation(tenant)
    first = await store(tenant.raw, room, "t", assistant("a", idempotency_key="k1"))
    second = await store(tenant.raw, room, "t", assistant("b", idempotency_key="k2"))
    event_id = first.event.event_id
    edited = await edit(tenant.raw, event_id, assistant("c", idempotency_key="k3"))
    deleted = await delete(tenant.raw, event_id)
    restored = await restore(tenant.raw, event_id)

    seen = (await history(tenant.raw, event_id))[::-1]

    assert [each.version for each in seen] == [1, 2, 3, 4, 5]
    assert [each.kind for each in seen] == [STORE, STORE, EDIT, DELETE, RESTORE]
    assert [each.idempotency_key for each in seen] == ["k1", "k2", "k3", "", ""]
    assert [each.event for each in seen] == [
        first.event, second.event, edited.event, deleted, restored,
    ]  # fmt: skip
    assert {each.event_id for each in seen} == {event_id}
    times = [each.create_time.ToNanoseconds() for each in seen]
    assert times == sorted(times)
    assert len(set(times)) == 5


async def test_an_event_that_never_changed_has_one_observation(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("x", idempotency_key="k"))

    [seen] = await history(tenant.raw, ids(stored)[0])

    assert (seen.version, seen.kind, seen.idempotency_key) == (1, STORE, "k")
    assert seen.event == await tenant.client.events.get(ids(stored)[0])
    assert seen.create_time == stored.events[0].create_time


@pytest.mark.parametrize(
    "event",
    [
        user("Grüezi 👩‍👩‍👧‍👦 日本語 \u202eabc", author_name="Zoë"),
        tool_call("c2", "tool", '{ "b" :\t1e400, "a": 0.10 }'),
        tool_result("c1", "not { json", is_error=True),
        system("s"),
        error("rate_limit", "slow down ⏳"),
    ],
    ids=["message", "tool call", "tool result", "system", "error"],
)
async def test_former_versions_are_kept_exactly(tenant: Tenant, event: pb.NewEvent) -> None:
    room = await empty_conversation(tenant)
    parent = ids(await append(tenant.raw, room, tool_call("c1", "t")))[0]
    event.MergeFrom(
        pb.NewEvent(
            model="m",
            provider_response_id="r",
            usage=res.Usage(input_tokens=2**40, cached_input_tokens=1),
            parent_event_id=parent,
            status=res.EVENT_STATUS_INCOMPLETE,
        )
    )
    event.metadata.update({"null": None, "float": 5e-324, "map": {"": [None, {}]}, "big": 2.0**60})
    event.event_time.FromJsonString("0001-01-01T00:00:00.000001Z")
    before = (await store(tenant.raw, room, "t", event)).event

    await edit(tenant.raw, before.event_id, pb.NewEvent(model="other"), "model")

    [_, first] = await history(tenant.raw, before.event_id)
    assert first.event == before


async def test_the_history_of_a_deleted_event_is_seen(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("x"))
    deleted = await delete(tenant.raw, ids(stored)[0])

    [last, first] = await history(tenant.raw, ids(stored)[0])

    assert last.event == deleted
    assert not first.event.HasField("delete_time")
    assert first.event.message.content == "x"


async def test_nothing_is_seen_of_an_erased_event(tenant: Tenant, postgres: LocalPostgres) -> None:
    stored = await append(tenant.raw, "", user("x"))
    event_id = ids(stored)[0]
    await edit(tenant.raw, event_id, user("y"))
    as_tenant(
        postgres.app_url,
        tenant.tenant_id,
        "SELECT annals.erase_observations(array_agg(event_id)) FROM annals.events",
    )

    assert await history(tenant.raw, event_id) == []


class TestTurns:
    async def test_a_turn_is_found_by_its_key(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "a:b c", user("one"))
        stored = await store(tenant.raw, room, "a:b c", user("two"))

        seen = await history(tenant.raw, turn_key=f"{room}:a:b c")

        assert stored.event.turn_key == f"{room}:a:b c"
        assert texts(seen) == ["two", "one"]

    async def test_a_turn_means_its_newest_event(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        old = await store(tenant.raw, room, "t", user("abandoned"))
        await revert(tenant.raw, room)
        await store(tenant.raw, room, "t", user("new"))

        assert texts(await history(tenant.raw, turn_key=f"{room}:t")) == ["new"]
        assert texts(await history(tenant.raw, old.event.event_id)) == ["abandoned"]

    async def test_unknown_turns_are_not_found(self, tenant: Tenant, other_tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        await store(tenant.raw, room, "t", user("x"))

        refused = [
            await failure(history(raw, turn_key=key))
            for raw, key in [
                (tenant.raw, f"{room}:u"),
                (tenant.raw, f"{uuid4()}:t"),
                (other_tenant.raw, f"{room}:t"),
            ]
        ]

        assert {each.reason for each in refused} == {"RESOURCE_NOT_FOUND"}

    @pytest.mark.parametrize(
        "key",
        [
            "t",
            ":t",
            "x:t",
            f"{UUID(int=7)}",
            f"{UUID(int=7)}:",
            f"{UUID(int=7)}:a\nb",
            f"{UUID(int=7)}:\x00",
        ],
    )
    async def test_keys_must_be_keys(self, tenant: Tenant, key: str) -> None:
        refused = await failure(history(tenant.raw, turn_key=key))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("turn_key",))

    async def test_one_of_both_is_named(self, tenant: Tenant) -> None:
        neither = await failure(history(tenant.raw))
        both = await failure(history(tenant.raw, str(uuid4()), turn_key=f"{uuid4()}:t"))

        assert (neither.reason, neither.fields) == ("FIELD_INVALID", ("event_id",))
        assert (both.reason, both.fields) == ("FIELD_INVALID", ("turn_key",))


class TestPaging:
    async def test_pages_join_without_seams(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        for n in range(7):
            stored = await store(tenant.raw, room, "t", user(f"{n}"))
        event_id = stored.event.event_id
        first = await tenant.raw.call(
            "ListObservations", pb.ListObservationsRequest(event_id=event_id, page_size=3)
        )
        # What is new after the first page does not move the next one.
        await store(tenant.raw, room, "t", user("late"))

        rest = await history(tenant.raw, event_id, page_size=3, page_token=first.next_page_token)

        assert texts(list(first.observations)) == ["6", "5", "4"]
        assert texts(rest) == ["3", "2", "1", "0"]

    async def test_a_page_also_ends_when_it_is_full(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        for n in range(20):
            stored = await store(tenant.raw, room, "t", user(blank(KIB * KIB - 3 * n)))

        page = await tenant.raw.call(
            "ListObservations", pb.ListObservationsRequest(event_id=stored.event.event_id)
        )

        assert 10 <= len(page.observations) <= 16
        assert page.next_page_token
        assert len(await history(tenant.raw, stored.event.event_id)) == 20

    async def test_tokens_are_of_their_query(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        for n in range(2):
            stored = await store(tenant.raw, room, "t", user(f"{n}"))
        request = pb.ListObservationsRequest(event_id=stored.event.event_id, page_size=1)
        token = (await tenant.raw.call("ListObservations", request)).next_page_token

        refused = [
            await failure(history(tenant.raw, turn_key=f"{room}:t", page_token=token)),
            await failure(history(tenant.raw, stored.event.event_id, page_token="x")),
        ]

        assert {each.reason for each in refused} == {"PAGE_TOKEN_INVALID"}


class TestActors:
    async def test_the_key_of_every_call_is_kept(self, tenant: Tenant) -> None:
        key = await tenant.client.keys.create("second", tenant_id=tenant.tenant_id)
        first_id = await _own_key(tenant)
        room = await empty_conversation(tenant)
        stored = await append(tenant.raw, room, user("x"))
        event_id = ids(stored)[0]
        metadata = (("authorization", f"Bearer {key.api_key_secret}"),)
        request = pb.EditEventRequest(event_id=event_id, event=user("y"))
        await tenant.raw.call("EditEvent", request, metadata=metadata)
        await tenant.raw.call(
            "DeleteEvent", pb.DeleteEventRequest(event_id=event_id), metadata=metadata
        )
        await restore(tenant.raw, event_id)

        seen = (await history(tenant.raw, event_id))[::-1]

        second_id = key.api_key.api_key_id
        assert [each.actor.api_key_id for each in seen] == [
            first_id, second_id, second_id, first_id,
        ]  # fmt: skip


async def _own_key(tenant: Tenant) -> str:
    [own] = [
        key
        async for key in tenant.client.keys.list(tenant_id=tenant.tenant_id)
        if key.display_name != "second"
    ]
    key_id: str = own.api_key_id
    return key_id


async def test_a_deleted_conversation_has_no_history(tenant: Tenant) -> None:
    stored = await append(tenant.raw, "", user("x"))
    await tenant.client.conversations.delete(stored.conversation_id)

    refused = await failure(history(tenant.raw, ids(stored)[0]))

    assert refused.reason == "RESOURCE_NOT_FOUND"
