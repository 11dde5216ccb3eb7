"""GetThread, GetToolCall and ListToolCalls."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.branching import revert, select_branch
from tests.support.raw import failure
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import assistant, system, tool_call, tool_result, user


async def reply(tenant: Tenant, room: str, parent: str = "", **fields: Any) -> str:
    stored = await append(tenant.raw, room, user("x", parent_event_id=parent, **fields))
    return ids(stored)[0]


async def tree(tenant: Tenant) -> tuple[str, list[str]]:
    """1 ← 2 ← 3 ← 4, 2 ← 5 ← 6, 1 ← 7; and 8 alone. Index 0 is empty."""
    room = await empty_conversation(tenant)
    events = [""]
    for parent in (0, 1, 2, 3, 2, 5, 1, 0):
        events.append(await reply(tenant, room, events[parent]))
    return room, events


async def thread(tenant: Tenant, event_id: str, **fields: Any) -> tuple[dict[int, int], bool]:
    """Distance by seq, and whether it was cut."""
    request = pb.GetThreadRequest(event_id=event_id, **fields)
    answer = await tenant.raw.call("GetThread", request)
    seqs = [item.event.seq for item in answer.events]
    assert seqs == sorted(seqs)
    return {item.event.seq: item.distance for item in answer.events}, answer.truncated


async def delete(tenant: Tenant, event_id: str) -> None:
    await tenant.raw.call("DeleteEvent", pb.DeleteEventRequest(event_id=event_id))


class TestThread:
    @pytest.mark.parametrize(
        ("of", "fields", "expected", "truncated"),
        [
            (2, {}, {1: -1, 2: 0, 3: 1, 4: 2, 5: 1, 6: 2}, False),
            (1, {}, {1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 3, 7: 1}, False),
            (6, {"direction": pb.THREAD_DIRECTION_ANCESTORS}, {1: -3, 2: -2, 5: -1, 6: 0}, False),
            (2, {"direction": pb.THREAD_DIRECTION_ANCESTORS}, {1: -1, 2: 0}, False),
            (2, {"direction": pb.THREAD_DIRECTION_DESCENDANTS},
             {2: 0, 3: 1, 4: 2, 5: 1, 6: 2}, False),
            (8, {"direction": pb.THREAD_DIRECTION_BOTH}, {8: 0}, False),
            (2, {"depth": 1}, {1: -1, 2: 0, 3: 1, 5: 1}, True),
            (2, {"depth": 2}, {1: -1, 2: 0, 3: 1, 4: 2, 5: 1, 6: 2}, False),
            (4, {"depth": 2}, {2: -2, 3: -1, 4: 0}, True),
            (4, {"depth": 3}, {1: -3, 2: -2, 3: -1, 4: 0}, False),
            (2, {"limit": 3}, {1: -1, 2: 0, 3: 1}, True),
            (2, {"limit": 1}, {2: 0}, True),
            (2, {"limit": 6}, {1: -1, 2: 0, 3: 1, 4: 2, 5: 1, 6: 2}, False),
        ],
        ids=str,
    )  # fmt: skip
    async def test_follows_links(
        self,
        tenant: Tenant,
        of: int,
        fields: dict[str, Any],
        expected: dict[int, int],
        truncated: bool,
    ) -> None:
        _, events = await tree(tenant)

        assert await thread(tenant, events[of], **fields) == (expected, truncated)

    async def test_passes_through_deleted_events(self, tenant: Tenant) -> None:
        _, events = await tree(tenant)
        await delete(tenant, events[2])

        assert await thread(tenant, events[4]) == ({1: -3, 3: -1, 4: 0}, False)
        assert await thread(tenant, events[1]) == ({1: 0, 3: 2, 4: 3, 5: 2, 6: 3, 7: 1}, False)

    async def test_crosses_branches(self, tenant: Tenant) -> None:
        room, events = await tree(tenant)
        await revert(tenant.raw, room, events[2])
        await reply(tenant, room, events[2])

        found, _ = await thread(tenant, events[2], direction=pb.THREAD_DIRECTION_DESCENDANTS)

        assert found == {2: 0, 3: 1, 4: 2, 5: 1, 6: 2, 9: 1}

    async def test_of_a_deleted_event_is_not_found(self, tenant: Tenant) -> None:
        _, events = await tree(tenant)
        await delete(tenant, events[2])

        refused = await failure(thread(tenant, events[2]))

        assert refused.metadata == (("id", events[2]), ("resource", "event"))

    async def test_a_long_one_is_cut_at_the_depth_asked(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        events: list[pb.NewEvent] = []
        last = ""
        for _ in range(130):
            last = str(uuid4())
            parent = events[-1].event_id if events else ""
            events.append(user("x", event_id=last, parent_event_id=parent))
        await append(tenant.raw, room, *events)

        found, truncated = await thread(tenant, last, depth=120, limit=1_000)

        assert (len(found), truncated, min(found.values())) == (121, True, -120)
        assert len((await thread(tenant, last))[0]) == 51

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"event_id": ""}, "event_id"),
            ({"depth": -1}, "depth"),
            ({"depth": 1001}, "depth"),
            ({"limit": -1}, "limit"),
            ({"limit": 1001}, "limit"),
            ({"direction": 9}, "direction"),
        ],
        ids=str,
    )
    async def test_malformed_fields_are_named(
        self, tenant: Tenant, fields: dict[str, Any], field: str
    ) -> None:
        request = pb.GetThreadRequest(**{"event_id": str(uuid4()), **fields})

        refused = await failure(tenant.raw.call("GetThread", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))


async def get_call(tenant: Tenant, **fields: Any) -> pb.ToolCall:
    answer = await tenant.raw.call("GetToolCall", pb.GetToolCallRequest(**fields))
    found: pb.ToolCall = answer.tool_call
    return found


def seqs_of(found: pb.ToolCall) -> tuple[int, int]:
    return found.call.seq, found.result.seq


class TestGetToolCall:
    async def test_by_call_by_result_and_by_id_are_the_same(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "", user("q"), tool_call("c", "search", '{"q": 1}'), tool_result("c", "r")
        )
        room, (question, call, result) = stored.conversation_id, ids(stored)

        by_call = await get_call(tenant, event_id=call)

        assert by_call == await get_call(tenant, event_id=result)
        assert by_call == await get_call(tenant, conversation_id=room, tool_call_id="c")
        assert by_call == await get_call(tenant, conversation_id=room, event_id=call)
        assert (by_call.call.event_id, by_call.result.event_id) == (call, result)
        assert by_call.message_event_id == question

    async def test_without_a_result_yet_has_none(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", tool_call("c", "t"))

        found = await get_call(tenant, event_id=ids(stored)[0])

        assert not found.HasField("result")
        assert found.message_event_id == ""

    async def test_an_id_used_again_pairs_each_call_with_its_own(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "",
            tool_call("c", "t"), tool_result("c", "1"), tool_result("c", "1 again"),
            tool_call("c", "t"), tool_result("c", "2"),
        )  # fmt: skip
        room, events = stored.conversation_id, ids(stored)

        assert seqs_of(await get_call(tenant, event_id=events[0])) == (1, 3)
        assert seqs_of(await get_call(tenant, event_id=events[1])) == (1, 3)
        assert seqs_of(await get_call(tenant, event_id=events[4])) == (4, 5)
        assert seqs_of(await get_call(tenant, conversation_id=room, tool_call_id="c")) == (4, 5)

    async def test_the_triggering_message_is_the_parent_where_there_is_one(
        self, tenant: Tenant
    ) -> None:
        room = await empty_conversation(tenant)
        first = ids(await append(tenant.raw, room, user("one"), user("two")))
        call = tool_call("c", "t", parent_event_id=first[0])
        event_id = ids(await append(tenant.raw, room, call))[0]

        assert (await get_call(tenant, event_id=event_id)).message_event_id == first[0]

    async def test_follows_the_branch(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", tool_call("c", "t"), tool_result("c", "trunk"))
        room, (call, trunk_result) = stored.conversation_id, ids(stored)
        await revert(tenant.raw, room, call)
        before = await get_call(tenant, event_id=call)
        await append(tenant.raw, room, tool_result("c", "second"), tool_call("d", "t"))

        assert not before.HasField("result")
        assert seqs_of(await get_call(tenant, event_id=call)) == (1, 3)
        assert seqs_of(await get_call(tenant, event_id=trunk_result)) == (1, 2)
        await select_branch(tenant.raw, room, 1)
        assert seqs_of(await get_call(tenant, event_id=call)) == (1, 2)
        refused = await failure(get_call(tenant, conversation_id=room, tool_call_id="d"))
        assert refused.metadata == (("id", "d"), ("resource", "tool call"))

    async def test_a_deleted_result_is_left_out(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", tool_call("c", "t"), tool_result("c", "r"))
        call, result = ids(stored)
        await delete(tenant, result)

        assert not (await get_call(tenant, event_id=call)).HasField("result")
        assert (await failure(get_call(tenant, event_id=result))).reason == "RESOURCE_NOT_FOUND"

    async def test_of_a_deleted_call_is_not_found(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", tool_call("c", "t"), tool_result("c", "r"))
        call, result = ids(stored)
        await delete(tenant, call)

        by_id = {"conversation_id": stored.conversation_id, "tool_call_id": "c"}
        for fields in ({"event_id": call}, {"event_id": result}, by_id):
            refused = await failure(get_call(tenant, **fields))
            assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_of_an_event_that_is_none_is_not_found(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("hi"))

        refused = await failure(get_call(tenant, event_id=ids(stored)[0]))

        assert dict(refused.metadata)["resource"] == "tool call"

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({}, "FIELD_INVALID"),
            ({"event_id": "x"}, "FIELD_INVALID"),
            ({"conversation_id": str(UUID(int=7))}, "FIELD_INVALID"),
            ({"conversation_id": str(UUID(int=7)), "tool_call_id": "c"}, "RESOURCE_NOT_FOUND"),
            ({"conversation_id": str(UUID(int=7)), "tool_call_id": "c" * 257}, "LIMIT_EXCEEDED"),
            ({"conversation_id": str(UUID(int=7)), "tool_call_id": "a\0b"}, "FIELD_INVALID"),
            ({"event_id": str(UUID(int=7))}, "RESOURCE_NOT_FOUND"),
        ],
        ids=str,
    )
    async def test_bad_requests_are_refused(
        self, tenant: Tenant, fields: dict[str, Any], reason: str
    ) -> None:
        assert (await failure(get_call(tenant, **fields))).reason == reason


async def calls_of(tenant: Tenant, message_id: str) -> list[tuple[int, int]]:
    request = pb.ListToolCallsRequest(message_event_id=message_id)
    answer = await tenant.raw.call("ListToolCalls", request)
    assert {found.message_event_id for found in answer.tool_calls} <= {message_id}
    return [seqs_of(found) for found in answer.tool_calls]


class TestListToolCalls:
    async def test_lists_those_up_to_the_next_message(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "",
            user("one"), tool_call("a", "t"), tool_call("b", "t"), tool_result("b", "r"),
            system("noted"), tool_result("a", "r"), tool_call("d", "t"),
            assistant("two"), tool_call("e", "t"),
        )  # fmt: skip
        events = ids(stored)

        assert await calls_of(tenant, events[0]) == [(2, 6), (3, 4), (7, 0)]
        assert await calls_of(tenant, events[7]) == [(9, 0)]

    async def test_lists_those_that_name_it_and_not_those_that_name_another(
        self, tenant: Tenant
    ) -> None:
        room = await empty_conversation(tenant)
        one, two = ids(await append(tenant.raw, room, user("one"), user("two")))
        await append(
            tenant.raw, room,
            tool_call("a", "t", parent_event_id=one), tool_call("b", "t"),
            tool_result("a", "r", parent_event_id=one),
        )  # fmt: skip

        assert await calls_of(tenant, one) == [(3, 5)]
        assert await calls_of(tenant, two) == [(4, 0)]

    async def test_follows_the_branch_of_a_message_left_behind(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "", user("one"), tool_call("a", "t"), user("two"), tool_call("b", "t")
        )
        room, events = stored.conversation_id, ids(stored)
        await revert(tenant.raw, room, events[0])
        await append(tenant.raw, room, tool_call("x", "t"))

        assert await calls_of(tenant, events[0]) == [(5, 0)]
        assert await calls_of(tenant, events[2]) == [(4, 0)]

    async def test_a_deleted_message_keeps_its_calls(self, tenant: Tenant) -> None:
        stored = await append(
            tenant.raw, "", user("one"), tool_call("a", "t"), user("two"), tool_call("b", "t")
        )
        events = ids(stored)
        await delete(tenant, events[2])

        assert await calls_of(tenant, events[0]) == [(2, 0)]
        assert (await get_call(tenant, event_id=events[3])).message_event_id == ""

    async def test_ends_after_a_thousand(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))
        for batch in range(2):
            calls = [tool_call(f"c{batch}-{n}", "t") for n in range(600)]
            await append(tenant.raw, stored.conversation_id, *calls)

        found = await calls_of(tenant, ids(stored)[0])

        assert [call for call, _ in found] == list(range(2, 1_002))

    async def test_of_what_is_no_message_is_not_found(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", tool_call("a", "t"))

        for event_id in (ids(stored)[0], str(uuid4())):
            refused = await failure(calls_of(tenant, event_id))
            assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_without_any_is_empty(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("one"))

        assert await calls_of(tenant, ids(stored)[0]) == []
