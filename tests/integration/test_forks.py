"""ForkConversation."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from tests.support.appending import append, check_counters, empty_conversation, ids, listed, state
from tests.support.branching import revert, select_branch
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import conversation_service_pb2 as pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import assistant, error, message, system, tool_call, tool_result, user


async def fork(tenant: Tenant, room: str, event_id: str = "", **fields: Any) -> Any:
    request = pb.ForkConversationRequest(conversation_id=room, event_id=event_id, **fields)
    return await tenant.raw.call("ForkConversation", request)


async def varied(tenant: Tenant) -> tuple[str, list[str]]:
    """One event of every kind with every field; each answers the one before."""
    first = await append(
        tenant.raw,
        "",
        user("question", metadata={"k": [1, None]}),
        session_id="visitor",
    )
    room, found = first.conversation_id, ids(first)
    for event in (
        assistant(
            "answer", model="m", provider_response_id="r1",
            usage=res.Usage(input_tokens=3, output_tokens=4, cached_input_tokens=1),
        ),
        tool_call("c1", "search", '{"q": 1}'),
        tool_result("c1", "found", is_error=True),
        system("noted"),
        error("rate_limit", "wait"),
        message("assistant", "cut off", author_name="A"),
    ):  # fmt: skip
        event.parent_event_id = found[-1]
        found += ids(await append(tenant.raw, room, event))
    return room, found


def content_of(event: res.Event) -> res.Event:
    """An event without what a copy has of its own."""
    bare = res.Event()
    bare.CopyFrom(event)
    for name in ("event_id", "conversation_id", "parent_event_id", "origin_event_id",
                 "create_time", "turn_key"):  # fmt: skip
        bare.ClearField(name)
    return bare


class TestCopy:
    async def test_holds_everything_and_names_its_origin(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)
        source = await listed(tenant, room)

        made = await fork(tenant, room)

        copies = await check_counters(tenant, made.conversation.conversation_id)
        assert made.event_count == len(copies) == len(source)
        assert [content_of(event) for event in copies] == [content_of(event) for event in source]
        assert [event.origin_event_id for event in copies] == found
        assert [event.parent_event_id for event in copies[1:]] == [e.event_id for e in copies[:-1]]
        assert not {event.event_id for event in copies} & set(found)

    async def test_leaves_the_source_as_it_was(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        before = await state(tenant.raw, room), await listed(tenant, room)

        await fork(tenant, room)

        assert (await state(tenant.raw, room), await listed(tenant, room)) == before

    async def test_keeps_owner_and_context_and_names_where_it_comes_from(
        self, tenant: Tenant
    ) -> None:
        agent = await tenant.client.agents.create("a")
        source = await tenant.client.conversations.create(
            agent_id=agent.agent_id, user_id="u", title="old", metadata={"m": "x"}
        )
        room = source.conversation_id
        stored = await append(tenant.raw, room, user("a"), assistant("b", provider_response_id="r"))

        made = (await fork(tenant, room)).conversation

        assert (made.agent_id, made.user_id, made.title) == (agent.agent_id, "u", "old")
        assert made.metadata == source.metadata
        assert (made.last_response_id, made.status) == ("r", res.CONVERSATION_STATUS_ACTIVE)
        assert made.forked_from == res.ForkOrigin(
            conversation_id=room, event_id=ids(stored)[1], seq=2
        )
        assert made == await state(tenant.raw, made.conversation_id)

    async def test_up_to_an_event_and_under_a_new_title(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)

        made = await fork(tenant, room, found[2], title="new")

        assert (made.event_count, made.conversation.title) == (3, "new")
        assert made.conversation.forked_from.seq == 3
        await append(tenant.raw, made.conversation.conversation_id, tool_result("c1", "late"))

    async def test_follows_the_branch(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)
        await revert(tenant.raw, room, found[1])
        await append(tenant.raw, room, user("other way"))

        current = await fork(tenant, room)
        trunk = await fork(tenant, room, branch=1)
        await select_branch(tenant.raw, room, 1)
        second = await fork(tenant, room, branch=2)

        assert [made.event_count for made in (current, trunk, second)] == [3, 7, 3]
        events = await listed(tenant, current.conversation.conversation_id)
        assert [(event.seq, event.branch) for event in events] == [(1, 1), (2, 1), (3, 1)]
        assert events[2].message.content == "other way"

    async def test_leaves_deleted_events_and_links_to_them_out(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)
        await tenant.raw.call("DeleteEvent", event_pb.DeleteEventRequest(event_id=found[1]))

        made = await fork(tenant, room)

        events = await check_counters(tenant, made.conversation.conversation_id)
        assert [event.origin_event_id for event in events] == [found[0], *found[2:]]
        assert events[1].parent_event_id == ""
        assert events[2].parent_event_id == events[1].event_id

    async def test_of_nothing_is_empty(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)

        made = await fork(tenant, room)

        assert (made.event_count, made.conversation.last_seq) == (0, 0)
        assert made.conversation.forked_from == res.ForkOrigin(conversation_id=room)

    async def test_of_a_fork_maps_parents_again(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        first = (await fork(tenant, room)).conversation.conversation_id

        second = (await fork(tenant, first)).conversation.conversation_id

        one, two = await listed(tenant, first), await listed(tenant, second)
        assert [event.origin_event_id for event in two] == [event.event_id for event in one]
        assert [event.parent_event_id for event in two[1:]] == [e.event_id for e in two[:-1]]

    async def test_is_found_by_search(self, tenant: Tenant) -> None:
        room = (await append(tenant.raw, "", user("the heron counts feathers"))).conversation_id
        made = (await fork(tenant, room)).conversation.conversation_id
        await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)

        found = await tenant.client.search.events("heron feathers", conversation_ids=[made])

        assert [hit.event.conversation_id for hit in found.hits] == [made]

    async def test_reuses_embeddings(self, tenant: Tenant, storage: RunningStorage) -> None:
        room = (await append(tenant.raw, "", user("the heron counts feathers"))).conversation_id
        await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
        embedded: list[str] = []
        embedder = storage.adapters.embedder
        original = embedder.embed

        async def counting(texts: Any, *args: Any, **kwargs: Any) -> Any:
            embedded.extend(texts)
            return await original(texts, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedder, "embed", counting)
            made = (await fork(tenant, room)).conversation.conversation_id
            await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)

        assert [text for text in embedded if "heron" in text] == []
        rows = await chunks_of(storage, tenant, made)
        assert len(rows) == 1


async def chunks_of(storage: RunningStorage, tenant: Tenant, room: str) -> Any:
    statement = "SELECT 1 AS one FROM annals.chunks WHERE conversation_id = %(room)s"
    [rows] = await storage.adapters.database.run(
        UUID(tenant.tenant_id), (statement, {"room": UUID(room)})
    )
    return rows


class TestRetries:
    async def test_the_same_request_id_makes_one_copy(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        key = str(uuid4())
        first = await fork(tenant, room, request_id=key)
        await append(tenant.raw, room, user("later"))

        again = await fork(tenant, room, request_id=key)

        assert again == first

    async def test_of_calls_at_once_one_copies(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        key = str(uuid4())

        made = await asyncio.gather(*[fork(tenant, room, request_id=key) for _ in range(8)])

        assert len({each.conversation.conversation_id for each in made}) == 1
        assert {each.event_count for each in made} == {7}

    async def test_other_content_under_a_request_id_is_refused(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)
        key = str(uuid4())
        await fork(tenant, room, request_id=key)

        refused = await failure(fork(tenant, room, found[0], request_id=key))

        assert refused.reason == "IDEMPOTENCY_KEY_REUSED"

    async def test_a_taken_id_is_refused_and_nothing_stays(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        key = str(uuid4())

        refused = await failure(fork(tenant, room, new_conversation_id=room, request_id=key))

        assert refused.code is grpc.StatusCode.ALREADY_EXISTS
        assert (await fork(tenant, room, request_id=key)).event_count == 7

    async def test_the_id_supplied_is_used(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        chosen = str(uuid4())

        made = await fork(tenant, room, new_conversation_id=chosen)

        assert made.conversation.conversation_id == chosen


class TestBadInput:
    async def test_of_an_event_out_of_view_is_not_found(self, tenant: Tenant) -> None:
        room, found = await varied(tenant)
        await revert(tenant.raw, room, found[1])

        refused = await failure(fork(tenant, room, found[4]))

        assert refused.metadata == (("id", found[4]), ("resource", "event"))

    @pytest.mark.parametrize(
        ("fields", "resource"),
        [
            ({"event_id": str(uuid4())}, "event"),
            ({"branch": 2}, "branch"),
            ({"conversation_id": str(uuid4())}, "conversation"),
        ],
    )
    async def test_of_what_is_not_there_is_not_found(
        self, tenant: Tenant, fields: dict[str, Any], resource: str
    ) -> None:
        room, _ = await varied(tenant)
        request = pb.ForkConversationRequest(**{"conversation_id": room, **fields})

        refused = await failure(tenant.raw.call("ForkConversation", request))

        assert refused.code is grpc.StatusCode.NOT_FOUND
        assert dict(refused.metadata)["resource"] == resource

    async def test_of_a_deleted_conversation_is_not_found(self, tenant: Tenant) -> None:
        room, _ = await varied(tenant)
        await tenant.client.conversations.delete(room)

        refused = await failure(fork(tenant, room))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    @pytest.mark.parametrize(
        "fields",
        [{"branch": -1}, {"new_conversation_id": "x"}, {"request_id": "x"}, {"event_id": "x"}],
    )
    async def test_malformed_fields_are_named(self, tenant: Tenant, fields: dict[str, Any]) -> None:
        room, _ = await varied(tenant)

        refused = await failure(fork(tenant, room, **fields))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", tuple(fields))
