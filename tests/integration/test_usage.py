"""UsageService: what providers reported, added up, and conversations that grow large."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY
from tests.support.appending import append, empty_conversation
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant, fresh_tenant, running_storage
from tests.support.storage import storage_settings as settings_of

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import usage_service_pb2 as pb
from annals_client import assistant, user
from annals_local.postgres import LocalPostgres

DIMENSIONS = ["DAY", "AGENT", "USER", "CONVERSATION", "MODEL"]


def numbers(*names: str) -> list[Any]:
    return [pb.UsageDimension.Value(f"USAGE_DIMENSION_{name}") for name in names]


async def usage(tenant: Tenant, *dimensions: str, **fields: Any) -> list[pb.UsageRow]:
    """Every row, over all pages."""
    request = pb.ListUsageRequest(group_by=numbers(*dimensions), **fields)
    rows: list[pb.UsageRow] = []
    while True:
        page = await tenant.raw.call("ListUsage", request)
        rows += page.rows
        if not page.next_page_token:
            return rows
        request.page_token = page.next_page_token


def answer(model: str, tokens: int) -> Any:
    reported = res.Usage(input_tokens=tokens, output_tokens=1, cached_input_tokens=tokens // 2)
    return assistant("ok", model=model, usage=reported)


def sums(row: pb.UsageRow) -> tuple[int, int, int, int]:
    return row.event_count, row.input_tokens, row.output_tokens, row.cached_input_tokens


@dataclass(frozen=True, slots=True)
class Used:
    """A tenant whose conversations have used something."""

    tenant: Tenant
    agent_id: str
    of_agent: str
    of_user: str


@pytest.fixture(scope="module")
async def used(storage: RunningStorage) -> AsyncIterator[Used]:
    async with fresh_tenant(storage) as tenant:
        client = tenant.client
        agent = await client.agents.create("a")
        of_agent = await client.conversations.create(agent_id=agent.agent_id)
        of_user = await client.conversations.create(user_id="u")
        await append(tenant.raw, of_agent.conversation_id, answer("m1", 10), user("x"))
        await append(tenant.raw, of_agent.conversation_id, answer("m1", 30), answer("m2", 100))
        await append(tenant.raw, of_user.conversation_id, answer("m1", 1_000))
        yield Used(tenant, agent.agent_id, of_agent.conversation_id, of_user.conversation_id)


class TestListUsage:
    async def test_without_dimensions_is_one_total(self, used: Used) -> None:
        [total] = await usage(used.tenant)

        assert sums(total) == (4, 1_140, 4, 570)
        assert (total.day, total.agent_id, total.user_id) == ("", "", "")
        assert (total.conversation_id, total.model) == ("", "")

    async def test_of_nothing_is_zero_in_all_and_no_row_else(self, tenant: Tenant) -> None:
        assert [sums(row) for row in await usage(tenant)] == [(0, 0, 0, 0)]
        assert await usage(tenant, "MODEL") == []

    async def test_beyond_what_can_be_said_is_the_most_that_can(self, tenant: Tenant) -> None:
        for _ in range(2):
            await append(tenant.raw, "", *(answer("m", 2**53) for _ in range(600)))

        [total] = await usage(tenant)

        assert total.input_tokens == 2**63 - 1

    async def test_groups_by_one_dimension(self, used: Used) -> None:
        by_model = await usage(used.tenant, "MODEL")
        by_user = await usage(used.tenant, "USER")
        by_agent = {row.agent_id: sums(row) for row in await usage(used.tenant, "AGENT")}
        by_room = {
            row.conversation_id: sums(row)[1] for row in await usage(used.tenant, "CONVERSATION")
        }

        assert [(row.model, *sums(row)) for row in by_model] == [
            ("m1", 3, 1_040, 3, 520),
            ("m2", 1, 100, 1, 50),
        ]
        assert [(row.user_id, row.input_tokens) for row in by_user] == [("", 140), ("u", 1_000)]
        assert by_agent == {"": (1, 1_000, 1, 500), used.agent_id: (3, 140, 3, 70)}
        assert by_room == {used.of_agent: 140, used.of_user: 1_000}

    async def test_days_are_utc(self, used: Used) -> None:
        [row] = await usage(used.tenant, "DAY")

        assert row.day in {
            (datetime.now(UTC) - timedelta(minutes=minutes)).date().isoformat()
            for minutes in (0, 10)
        }

    @pytest.mark.parametrize("order", list(permutations(["MODEL", "CONVERSATION", "USER"])))
    async def test_rows_run_in_the_order_asked_over_pages(
        self, used: Used, order: tuple[str, ...]
    ) -> None:
        fields = {"MODEL": "model", "CONVERSATION": "conversation_id", "USER": "user_id"}
        whole = await usage(used.tenant, *order)
        keys = [tuple(getattr(row, fields[name]) for name in order) for row in whole]

        assert len(keys) == 3
        assert keys == sorted(keys)
        assert await usage(used.tenant, *order, page_size=1) == whole
        assert await usage(used.tenant, *order, page_size=2) == whole

    async def test_filters_hold_together(self, used: Used) -> None:
        tenant, today = used.tenant, (await usage(used.tenant, "DAY"))[0].day

        async def tokens(**fields: Any) -> int:
            return sum(row.input_tokens for row in await usage(tenant, **fields))

        assert await tokens(agent_id=used.agent_id) == 140
        assert await tokens(user_id="u") == 1_000
        assert await tokens(conversation_id=used.of_agent) == 140
        assert await tokens(conversation_id=used.of_agent, user_id="u") == 0
        assert await tokens(start_day=today, end_day=today) == 1_140
        assert await tokens(end_day="2025-10-24") == 0
        assert await tokens(start_day="9999-12-31") == 0
        assert await tokens(agent_id=str(uuid4())) == 0

    async def test_a_deleted_conversation_counts(self, tenant: Tenant) -> None:
        stored = await append(tenant.raw, "", answer("m", 5))
        request = conversation_pb.DeleteConversationRequest(conversation_id=stored.conversation_id)
        await tenant.raw.call("DeleteConversation", request)

        assert [sums(row)[1] for row in await usage(tenant)] == [5]

    async def test_of_others_is_not_there(self, used: Used, tenant: Tenant) -> None:
        assert await usage(tenant, "CONVERSATION", conversation_id=used.of_agent) == []
        assert await usage(tenant, "AGENT", agent_id=used.agent_id) == []
        assert await usage(tenant, "USER", user_id="u") == []

    @pytest.mark.parametrize("field", ["start_day", "end_day"])
    @pytest.mark.parametrize(
        "value", ["today", "2025-13-01", "2025-02-30", "20251024", "2025-W43-5", "2025-1-2"]
    )
    async def test_a_day_must_exist(self, tenant: Tenant, field: str, value: str) -> None:
        refused = await failure(tenant.raw.call("ListUsage", pb.ListUsageRequest(**{field: value})))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (field,))

    async def test_a_period_runs_forwards(self, tenant: Tenant) -> None:
        request = pb.ListUsageRequest(start_day="2025-10-24", end_day="2025-10-23")

        refused = await failure(tenant.raw.call("ListUsage", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("end_day",))

    async def test_a_dimension_is_named_once(self, tenant: Tenant) -> None:
        request = pb.ListUsageRequest(group_by=numbers("DAY", "DAY"))

        refused = await failure(tenant.raw.call("ListUsage", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("group_by",))


async def large(tenant: Tenant, **fields: Any) -> list[pb.LargeConversation]:
    request = pb.ListLargeConversationsRequest(**fields)
    found: list[pb.LargeConversation] = []
    while True:
        page = await tenant.raw.call("ListLargeConversations", request)
        found += page.conversations
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def alerts() -> float:
    return REGISTRY.get_sample_value("annals_storage_large_conversations_total") or 0.0


class TestLargeConversations:
    async def test_are_listed_largest_first(self, tenant: Tenant) -> None:
        sizes = [1, 3, 2, 3]
        rooms = [
            (await append(tenant.raw, "", *[user("hello")] * size)).conversation_id
            for size in sizes
        ]
        await empty_conversation(tenant)

        found = await large(tenant, min_event_count=2, page_size=1)

        assert [size.event_count for size in found] == [3, 3, 2]
        assert {size.conversation_id for size in found} == set(rooms[1:])
        assert all(size.token_count == size.event_count for size in found)
        assert all(size.HasField("last_event_time") for size in found)

    async def test_are_those_of_the_installations_size_unless_told(self, tenant: Tenant) -> None:
        await append(tenant.raw, "", user("hello"))

        assert await large(tenant) == []
        assert len(await large(tenant, min_event_count=1)) == 1

    async def test_deleted_ones_are_left_out(self, tenant: Tenant) -> None:
        room = (await append(tenant.raw, "", user("hello"))).conversation_id
        request = conversation_pb.DeleteConversationRequest(conversation_id=room)
        await tenant.raw.call("DeleteConversation", request)

        assert await large(tenant, min_event_count=1) == []

    @pytest.mark.parametrize("value", [-1, 2**63 - 1])
    async def test_a_size_must_be_possible(self, tenant: Tenant, value: int) -> None:
        request = pb.ListLargeConversationsRequest(min_event_count=value)

        refused = await failure(tenant.raw.call("ListLargeConversations", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("min_event_count",))

    async def test_each_is_counted_once_when_it_reaches_the_size(
        self, postgres: LocalPostgres, tmp_path: Any
    ) -> None:
        settings = settings_of(postgres, tmp_path, large_conversation_events=4)
        async with running_storage(settings) as storage, fresh_tenant(storage) as tenant:
            before = alerts()
            room = (await append(tenant.raw, "", *[user("x")] * 3)).conversation_id
            assert alerts() == before

            request_id = str(uuid4())
            for _ in range(2):
                await append(tenant.raw, room, user("y"), user("z"), request_id=request_id)
            assert alerts() == before + 1

            await append(tenant.raw, room, user("w"))
            assert alerts() == before + 1
            assert [size.conversation_id for size in await large(tenant)] == [room]
