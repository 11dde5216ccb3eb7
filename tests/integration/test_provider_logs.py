"""ProviderService: raw requests and responses, where an agent wants them, and not for long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import empty_conversation
from tests.support.raw import failure
from tests.support.scratch import run
from tests.support.storage import Tenant
from tests.support.valid_requests import logged_conversation

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import provider_service_pb2 as pb
from annals_local.postgres import LocalPostgres

LIMIT_BYTES = 256 * 1024
NOBODY = str(UUID(int=0))


async def log(tenant: Tenant, conversation_id: str, **fields: Any) -> pb.ProviderLog:
    values = {"provider": "openai", "request_json": "{}", **fields}
    request = pb.CreateProviderLogRequest(
        provider_log=pb.ProviderLog(conversation_id=conversation_id, **values)
    )
    created: pb.ProviderLog = (await tenant.raw.call("CreateProviderLog", request)).provider_log
    return created


async def logs(tenant: Tenant, conversation_id: str, **fields: Any) -> list[pb.ProviderLog]:
    """Every log, over all pages."""
    request = pb.ListProviderLogsRequest(conversation_id=conversation_id, **fields)
    found: list[pb.ProviderLog] = []
    while True:
        page = await tenant.raw.call("ListProviderLogs", request)
        found += page.provider_logs
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def keep_for(postgres: LocalPostgres, tenant: Tenant, agent_id: str, days: int | None) -> None:
    run(
        postgres.admin_url,
        "INSERT INTO annals.retention_policies (tenant_id, agent_id, provider_log_days) "
        "VALUES (%s, %s, %s) RETURNING 1 AS done",
        [tenant.tenant_id, agent_id, days],
    )


def age(created: pb.ProviderLog) -> timedelta:
    return created.expire_time.ToDatetime() - created.create_time.ToDatetime()


async def test_keeps_the_call_and_gives_it_back(tenant: Tenant) -> None:
    room = await logged_conversation(tenant)

    made = await log(
        tenant,
        room,
        model="gpt-4o",
        request_json='{"n":  1e400}',
        response_json='["ok"]',
        latency_ms=7,
    )

    assert (made.request_json, made.response_json) == ("", "")
    [kept] = await logs(tenant, room)
    assert (kept.request_json, kept.response_json) == ('{"n":  1e400}', '["ok"]')
    assert (kept.provider, kept.model, kept.latency_ms) == ("openai", "gpt-4o", 7)
    assert (kept.provider_log_id, kept.expire_time) == (made.provider_log_id, made.expire_time)


async def test_a_call_without_a_response_is_kept_too(tenant: Tenant) -> None:
    room = await logged_conversation(tenant)

    await log(tenant, room, response_json="")

    assert [kept.response_json for kept in await logs(tenant, room)] == [""]


class TestOptIn:
    async def test_is_asked_of_the_agent(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        room = await tenant.client.conversations.create(agent_id=agent.agent_id)

        refused = await failure(log(tenant, room.conversation_id))

        assert (refused.code.name, refused.reason) == (
            "FAILED_PRECONDITION",
            "PROVIDER_LOGS_DISABLED",
        )
        assert dict(refused.metadata) == {"agent_id": agent.agent_id}
        assert await logs(tenant, room.conversation_id) == []

    async def test_is_off_without_an_agent(self, tenant: Tenant) -> None:
        refused = await failure(log(tenant, await empty_conversation(tenant)))

        assert refused.reason == "PROVIDER_LOGS_DISABLED"


class TestVisibility:
    async def test_of_missing_foreign_and_deleted_conversations(
        self, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        deleted = await logged_conversation(tenant)
        await log(tenant, deleted)
        request = conversation_pb.DeleteConversationRequest(conversation_id=deleted)
        await tenant.raw.call("DeleteConversation", request)
        theirs = await logged_conversation(other_tenant)

        for room in (str(uuid4()), theirs, deleted):
            for call in (log(tenant, room), logs(tenant, room)):
                refused = await failure(call)
                assert (refused.code.name, refused.reason) == ("NOT_FOUND", "RESOURCE_NOT_FOUND")
                assert dict(refused.metadata) == {"resource": "conversation", "id": room}


class TestExpiry:
    async def test_is_after_30_days(self, tenant: Tenant) -> None:
        assert age(await log(tenant, await logged_conversation(tenant))) == timedelta(days=30)

    async def test_is_as_the_tenants_policy_says(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        keep_for(postgres, tenant, NOBODY, 7)

        assert age(await log(tenant, await logged_conversation(tenant))) == timedelta(days=7)

    async def test_is_as_the_agents_policy_says_before_the_tenants(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        keep_for(postgres, tenant, NOBODY, 7)
        with_days = await logged_conversation(tenant)
        without_days = await logged_conversation(tenant)
        for room, days in ((with_days, 2), (without_days, None)):
            found = await tenant.client.conversations.get(room)
            keep_for(postgres, tenant, found.agent_id, days)

        assert age(await log(tenant, with_days)) == timedelta(days=2)
        assert age(await log(tenant, without_days)) == timedelta(days=7)

    async def test_an_expired_log_is_not_shown(
        self, tenant: Tenant, postgres: LocalPostgres
    ) -> None:
        room = await logged_conversation(tenant)
        expired, kept = await log(tenant, room), await log(tenant, room)
        run(
            postgres.admin_url,
            "UPDATE annals.provider_logs SET expires_at = now() WHERE provider_log_id = %s "
            "RETURNING 1 AS done",
            [expired.provider_log_id],
        )

        assert [it.provider_log_id for it in await logs(tenant, room)] == [kept.provider_log_id]


class TestPages:
    @pytest.mark.parametrize("page_size", [1, 2, 5, 100])
    async def test_run_from_the_newest(self, tenant: Tenant, page_size: int) -> None:
        room = await logged_conversation(tenant)
        made = [(await log(tenant, room)).provider_log_id for _ in range(5)]

        found = await logs(tenant, room, page_size=page_size)

        assert [it.provider_log_id for it in found] == made[::-1]

    async def test_end_at_16_mib(self, tenant: Tenant) -> None:
        room = await logged_conversation(tenant)
        text = f'"{"x" * (LIMIT_BYTES - 2)}"'
        for _ in range(33):
            await log(tenant, room, request_json=text, response_json=text)

        request = pb.ListProviderLogsRequest(conversation_id=room, page_size=100)
        first = await tenant.raw.call("ListProviderLogs", request)

        assert len(first.provider_logs) == 31
        assert len(await logs(tenant, room, page_size=100)) == 33

    @pytest.mark.parametrize("page_size", [-1, 101])
    async def test_hold_at_most_100(self, tenant: Tenant, page_size: int) -> None:
        room = await logged_conversation(tenant)

        refused = await failure(logs(tenant, room, page_size=page_size))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("page_size",))


class TestBounds:
    @pytest.mark.parametrize("field", ["request_json", "response_json"])
    async def test_a_json_text_has_at_most_256_kib(self, tenant: Tenant, field: str) -> None:
        room = await logged_conversation(tenant)
        text = f'"{"x" * (LIMIT_BYTES - 1)}"'

        refused = await failure(log(tenant, room, **{field: text}))

        assert (refused.reason, refused.fields) == ("LIMIT_EXCEEDED", (f"provider_log.{field}",))

    @pytest.mark.parametrize("field", ["request_json", "response_json"])
    @pytest.mark.parametrize("text", ["{", "NaN", "{} {}", '"\\ud800"', "[" * 100_000])
    async def test_a_json_text_is_json(self, tenant: Tenant, field: str, text: str) -> None:
        room = await logged_conversation(tenant)

        refused = await failure(log(tenant, room, **{field: text}))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"provider_log.{field}",))

    @pytest.mark.parametrize(
        ("field", "value", "reason"),
        [
            ("request_json", "", "FIELD_INVALID"),
            ("provider", "", "FIELD_INVALID"),
            ("provider", "x" * 101, "LIMIT_EXCEEDED"),
            ("model", "x" * 201, "LIMIT_EXCEEDED"),
            ("latency_ms", -1, "FIELD_INVALID"),
            ("latency_ms", 2**63 - 1, "FIELD_INVALID"),
        ],
    )
    async def test_of_the_other_fields(
        self, tenant: Tenant, field: str, value: Any, reason: str
    ) -> None:
        room = await logged_conversation(tenant)

        refused = await failure(log(tenant, room, **{field: value}))

        assert (refused.reason, refused.fields) == (reason, (f"provider_log.{field}",))
