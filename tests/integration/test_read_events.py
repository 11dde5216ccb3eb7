"""GetEvent, BatchGetEvents and ListEvents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc
import pytest
from tests.support.appending import append, empty_conversation, ids, listed
from tests.support.raw import failure
from tests.support.storage import Tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import assistant, error, message, system, tool_call, tool_result, user

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)


async def mixed(tenant: Tenant) -> str:
    """One event of every kind, a minute apart; seq 1–8."""
    events = [
        user("question"),
        assistant("let me see"),
        tool_call("c1", "search"),
        tool_result("c1", "found"),
        tool_call("c2", "weather"),
        tool_result("c2", "sunny"),
        system("noted"),
        error("rate_limit", "wait"),
    ]
    for minute, event in enumerate(events):
        event.event_time.FromDatetime(NOON + timedelta(minutes=minute))
    return (await append(tenant.raw, "", *events)).conversation_id


async def seqs_of(tenant: Tenant, conversation_id: str, **query: Any) -> list[int]:
    return [event.seq for event in await listed(tenant, conversation_id, **query)]


class TestGet:
    async def test_by_id_and_by_seq_are_the_same(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("a"), user("b"))
        room, event_id = stored.conversation_id, ids(stored)[1]
        get = tenant.client.events.get

        by_id = await get(event_id)

        assert by_id == await get(conversation_id=room, seq=2)
        assert by_id == await get(event_id, conversation_id=room)
        assert by_id.message.content == "b"

    async def test_of_an_id_in_another_conversation_is_not_found(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("a"))
        request = pb.GetEventRequest(
            event_id=ids(stored)[0], conversation_id=await empty_conversation(tenant)
        )

        refused = await failure(tenant.raw.call("GetEvent", request))

        assert refused.code is grpc.StatusCode.NOT_FOUND
        assert refused.metadata == (("id", ids(stored)[0]), ("resource", "event"))

    @pytest.mark.parametrize("seq", [2, 2**62])
    async def test_of_a_seq_beyond_the_end_is_not_found(self, tenant: Tenant, seq: int) -> None:
        stored = await append(tenant.raw, "", user("a"))
        request = pb.GetEventRequest(conversation_id=stored.conversation_id, seq=seq)

        refused = await failure(tenant.raw.call("GetEvent", request))

        assert refused.reason == "RESOURCE_NOT_FOUND"


class TestBatchGet:
    async def test_keeps_the_order_asked_and_names_the_missing(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", *[user(str(n)) for n in range(5)])
        mine, missing = ids(stored), [str(uuid4()), str(uuid4())]
        wanted = [mine[3], missing[0], mine[0], mine[4], missing[1]]

        found = await tenant.client.events.batch_get(wanted)

        assert [event.message.content for event in found.events] == ["3", "0", "4"]
        assert list(found.missing_event_ids) == missing

    async def test_of_ids_in_capitals_finds_them(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", user("a"))

        found = await tenant.client.events.batch_get([ids(stored)[0].upper()])

        assert len(found.events) == 1

    @pytest.mark.parametrize(("count", "reason"), [(0, "FIELD_INVALID"), (1001, "LIMIT_EXCEEDED")])
    async def test_takes_one_to_a_thousand(self, tenant: Tenant, count: int, reason: str) -> None:
        request = pb.BatchGetEventsRequest(event_ids=[str(uuid4())] * count)

        refused = await failure(tenant.raw.call("BatchGetEvents", request))

        assert (refused.reason, refused.fields) == (reason, ("event_ids",))


class TestList:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({}, [1, 2, 3, 4, 5, 6, 7, 8]),
            ({"order": "descending"}, [8, 7, 6, 5, 4, 3, 2, 1]),
            ({"after_seq": 6}, [7, 8]),
            ({"before_seq": 3}, [1, 2]),
            ({"after_seq": 2, "before_seq": 5, "order": "descending"}, [4, 3]),
            ({"after_seq": 8}, []),
            ({"types": ["message"]}, [1, 2]),
            ({"types": ["tool-call", "error"]}, [3, 5, 8]),
            ({"types": ["tool-result"], "order": "descending"}, [6, 4]),
            ({"types": ["system"]}, [7]),
            ({"roles": ["user"]}, [1]),
            ({"roles": ["user", "assistant"]}, [1, 2]),
            ({"roles": ["tool"]}, []),
            ({"tool_names": ["search"]}, [3, 4]),
            ({"tool_names": ["search", "weather"], "types": ["tool-result"]}, [4, 6]),
            ({"start_time": NOON + timedelta(minutes=6)}, [7, 8]),
            ({"end_time": NOON + timedelta(minutes=1)}, [1]),
            (
                {
                    "start_time": NOON + timedelta(minutes=2),
                    "end_time": NOON + timedelta(minutes=4),
                },
                [3, 4],
            ),
        ],
        ids=str,
    )
    async def test_filters_hold_together_in_both_orders(
        self, tenant: Tenant, query: dict[str, Any], expected: list[int]
    ) -> None:
        room = await mixed(tenant)

        assert await seqs_of(tenant, room, **query) == expected

    @pytest.mark.parametrize("order", ["ascending", "descending"])
    @pytest.mark.parametrize("page_size", [1, 3, 8, 1000])
    async def test_pages_hold_everything_once(
        self, tenant: Tenant, order: str, page_size: int
    ) -> None:
        room = await mixed(tenant)
        expected = list(range(1, 9)) if order == "ascending" else list(range(8, 0, -1))

        assert await seqs_of(tenant, room, order=order, page_size=page_size) == expected

    async def test_pages_of_a_filtered_list_hold_everything_once(self, tenant: Tenant) -> None:
        room = await mixed(tenant)

        found = await seqs_of(tenant, room, tool_names=["search", "weather"], page_size=1)

        assert found == [3, 4, 5, 6]

    async def test_a_page_without_a_successor_has_no_token(self, tenant: Tenant) -> None:
        room = await mixed(tenant)
        request = pb.ListEventsRequest(conversation_id=room, page_size=9)

        page = await tenant.raw.call("ListEvents", request)

        assert (len(page.events), page.next_page_token) == (8, "")

    async def test_pages_downwards_are_stable_under_appends(self, tenant: Tenant) -> None:
        room = await mixed(tenant)
        request = pb.ListEventsRequest(
            conversation_id=room, page_size=3, order=pb.SORT_ORDER_DESCENDING
        )
        first = await tenant.raw.call("ListEvents", request)
        await append(tenant.raw, room, user("new"))
        request.page_token = first.next_page_token

        second = await tenant.raw.call("ListEvents", request)

        assert [event.seq for event in second.events] == [5, 4, 3]

    async def test_a_page_ends_before_sixteen_mebibytes(self, tenant: Tenant) -> None:
        room = await empty_conversation(tenant)
        big = assistant("", metadata={"filler": "x" * 60_000})
        for _ in range(2):
            await append(tenant.raw, room, *[big] * 200)
        request = pb.ListEventsRequest(conversation_id=room, page_size=1000)

        first = await tenant.raw.call("ListEvents", request)
        request.page_token = first.next_page_token
        second = await tenant.raw.call("ListEvents", request)

        assert first.ByteSize() <= 16 * 1024 * 1024 + 1024
        assert [e.seq for e in (*first.events, *second.events)] == list(range(1, 401))
        assert second.next_page_token == ""

    @pytest.mark.parametrize("change", ["order", "types", "conversation_id"])
    async def test_a_page_token_continues_only_its_own_query(
        self, tenant: Tenant, change: str
    ) -> None:
        changes: dict[str, Callable[[pb.ListEventsRequest], None]] = {
            "order": lambda r: setattr(r, "order", pb.SORT_ORDER_DESCENDING),
            "types": lambda r: r.types.append(1),
            "conversation_id": lambda r: setattr(r, "conversation_id", other),
        }
        room, other = await mixed(tenant), await mixed(tenant)
        request = pb.ListEventsRequest(conversation_id=room, page_size=2)
        request.page_token = (await tenant.raw.call("ListEvents", request)).next_page_token
        changes[change](request)

        refused = await failure(tenant.raw.call("ListEvents", request))

        assert (refused.reason, refused.fields) == ("PAGE_TOKEN_INVALID", ("page_token",))

    async def test_of_a_missing_conversation_is_not_found(self, tenant: Tenant) -> None:
        request = pb.ListEventsRequest(conversation_id=str(uuid4()))

        refused = await failure(tenant.raw.call("ListEvents", request))

        assert refused.reason == "RESOURCE_NOT_FOUND"

    async def test_of_an_empty_conversation_is_empty(self, tenant: Tenant) -> None:
        assert await seqs_of(tenant, await empty_conversation(tenant)) == []


async def test_messages_of_every_role_are_found_by_role(tenant: Tenant) -> None:
    roles = ["user", "assistant", "system", "tool"]
    stored = await append(tenant.raw, "", *[message(role, role) for role in roles])

    for seq, role in enumerate(roles, start=1):
        assert await seqs_of(tenant, stored.conversation_id, roles=[role]) == [seq]
