"""Tenants, agents and keys: who may do what, and what wrong keys learn."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import grpc
import psycopg
import pytest
from structlog.testing import capture_logs
from tests.support.appending import append
from tests.support.raw import Failure, Raw, failure, unary_methods
from tests.support.storage import ADMIN_KEY, RunningStorage, Tenant
from tests.support.valid_requests import ADMIN_ONLY, VALID
from tests.support.waiting import eventually

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres

TENANT_ADMIN = {
    *("CreateAgent", "UpdateAgent", "CreateApiKey", "ListApiKeys", "RevokeApiKey"),
    *("CreateSigningKey", "ListSigningKeys", "RevokeSigningKey"),
    *("GetSearchParameters", "UpdateSearchParameters", "ListParkedEntries", "RetryParkedEntries"),
    *("EraseEvent", "EraseConversation", "EraseUser", "VerifyErasure"),
    *("GetErasureReceipt", "ListErasureReceipts", "MoveToColdStorage", "RestoreFromColdStorage"),
    *("SetRetentionPolicy", "GetRetentionPolicy", "ListRetentionPolicies"),
    *("DeleteRetentionPolicy", "ListSearchLog", "ListParkedJobs", "RetryParkedJobs"),
}
ANY_KEY = {"GetAgent", "ListAgents", "GetCaller"}


async def key_with(tenant: Tenant, *scopes: str, **fields: Any) -> pb.CreateApiKeyResponse:
    return await tenant.client.keys.create("k", scopes=scopes, tenant_id=tenant.tenant_id, **fields)


@pytest.fixture
async def data_only(storage: RunningStorage, tenant: Tenant) -> AsyncIterator[Raw]:
    async with storage.raw((await key_with(tenant, "data")).api_key_secret) as raw:
        yield raw


@pytest.fixture
async def admin_only(storage: RunningStorage, tenant: Tenant) -> AsyncIterator[Raw]:
    async with storage.raw((await key_with(tenant, "tenant-admin")).api_key_secret) as raw:
        yield raw


class TestTenants:
    async def test_are_created_with_a_first_key(self, storage: RunningStorage, admin: Raw) -> None:
        made = await admin.call("CreateTenant", pb.CreateTenantRequest(display_name="Ünïcode ✓"))

        assert made.tenant.display_name == "Ünïcode ✓"
        assert UUID(made.tenant.tenant_id).version == 7
        assert set(made.api_key.scopes) == {res.API_KEY_SCOPE_DATA, res.API_KEY_SCOPE_TENANT_ADMIN}
        got = await admin.call("GetTenant", pb.GetTenantRequest(tenant_id=made.tenant.tenant_id))
        assert got.tenant == made.tenant
        async with storage.raw(made.api_key_secret) as raw:
            await raw.call("ListConversations")

    async def test_are_listed_oldest_first_over_pages(
        self, admin: Raw, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        request, found = pb.ListTenantsRequest(page_size=3), []
        while True:
            page = await admin.call("ListTenants", request)
            found += [item.tenant_id for item in page.tenants]
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token

        assert len(found) == len(set(found))
        assert found.index(tenant.tenant_id) < found.index(other_tenant.tenant_id)

    async def test_missing_are_not_found(self, admin: Raw) -> None:
        missing = str(uuid4())

        refused = await failure(admin.call("GetTenant", pb.GetTenantRequest(tenant_id=missing)))

        assert refused.metadata == (("id", missing), ("resource", "tenant"))

    @pytest.mark.parametrize("name", ["CreateAgent", "CreateApiKey"])
    async def test_missing_take_neither_agents_nor_keys(
        self, admin: Raw, tenant: Tenant, name: str
    ) -> None:
        request = await VALID[name](tenant)
        request.tenant_id = str(uuid4())

        refused = await failure(admin.call(name, request))

        assert dict(refused.metadata)["resource"] == "tenant"


class TestAgents:
    async def test_are_kept_exactly(self, tenant: Tenant) -> None:
        agent_id = str(uuid4())
        tools, schema = '[ {"name": "x"} ]\n', '{ "type":\t"object" }'

        made = await tenant.client.agents.create(
            "Ada", agent_id=agent_id, system_prompt="Be brief. 日本", model="gpt-4o",
            temperature=0.25, tools_json=tools, output_schema_json=schema,
        )  # fmt: skip

        assert made == await tenant.client.agents.get(agent_id)
        assert (made.agent_id, made.tools_json, made.output_schema_json) == (
            agent_id, tools, schema,
        )  # fmt: skip
        assert made.temperature == 0.25
        bare = await tenant.client.agents.create("b")
        assert not bare.HasField("temperature")
        assert [a.display_name async for a in tenant.client.agents.list(page_size=1)] == [
            "Ada",
            "b",
        ]

    async def test_of_an_id_that_exists_are_refused(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        request = pb.CreateAgentRequest(agent=res.Agent(agent_id=agent.agent_id, display_name="b"))

        refused = await failure(tenant.raw.call("CreateAgent", request))

        assert (refused.code, refused.reason) == (
            grpc.StatusCode.ALREADY_EXISTS,
            "RESOURCE_ALREADY_EXISTS",
        )

    async def test_are_administered_by_the_installation_too(
        self, admin: Raw, tenant: Tenant
    ) -> None:
        request = pb.CreateAgentRequest(
            tenant_id=tenant.tenant_id, agent=res.Agent(display_name="a")
        )

        made = await admin.call("CreateAgent", request)

        assert await tenant.client.agents.get(made.agent.agent_id) == made.agent


class TestUpdateAgent:
    async def update(self, tenant: Tenant, *paths: str, **fields: Any) -> res.Agent:
        request = pb.UpdateAgentRequest(agent=res.Agent(**fields))
        request.update_mask.paths.extend(paths)
        return (await tenant.raw.call("UpdateAgent", request)).agent

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("display_name", "Bob ✓"),
            ("system_prompt", "Be long."),
            ("model", "gpt-5"),
            ("temperature", 1.5),
            ("tools_json", "[ ]"),
            ("output_schema_json", "{ }"),
            ("end_user_mode", res.END_USER_MODE_SIGNED),
            ("context_injection", res.ContextInjection(include_locale=True, template="{locale}")),
            ("provider_logs_enabled", True),
        ],
    )
    async def test_changes_the_named_field_alone(
        self, tenant: Tenant, path: str, value: Any
    ) -> None:
        made = await tenant.client.agents.create("Ada", system_prompt="Be brief.", model="gpt-4o")

        changed = await self.update(tenant, path, agent_id=made.agent_id, **{path: value})

        assert changed == await tenant.client.agents.get(made.agent_id)
        assert getattr(changed, path) == value
        changed.ClearField(path)
        made.ClearField(path)
        changed.ClearField("update_time")
        made.ClearField("update_time")
        assert changed == made

    async def test_clears_what_is_named_and_empty(self, tenant: Tenant) -> None:
        made = await tenant.client.agents.create("Ada", system_prompt="Be brief.", temperature=0.5)

        cleared = await self.update(
            tenant, "system_prompt", "temperature", "context_injection", agent_id=made.agent_id
        )

        assert cleared.system_prompt == ""
        assert not cleared.HasField("temperature")
        assert not cleared.HasField("context_injection")

    @pytest.mark.parametrize(
        ("paths", "fields", "field"),
        [
            ((), {}, "update_mask"),
            (("agent_id",), {}, "update_mask"),
            (("tenant_id",), {}, "update_mask"),
            (("display_name",), {}, "agent.display_name"),
            (("temperature",), {"temperature": 2.1}, "agent.temperature"),
            (("temperature",), {"temperature": float("nan")}, "agent.temperature"),
            (("tools_json",), {"tools_json": "{}"}, "agent.tools_json"),
            (("end_user_mode",), {"end_user_mode": 99}, "agent.end_user_mode"),
            (
                ("context_injection",),
                {"context_injection": res.ContextInjection(template="x" * 10_001)},
                "agent.context_injection.template",
            ),
        ],
    )
    async def test_bad_changes_are_refused_and_change_nothing(
        self, tenant: Tenant, paths: tuple[str, ...], fields: dict[str, Any], field: str
    ) -> None:
        made = await tenant.client.agents.create("Ada")

        refused = await failure(
            self.update(tenant, *paths, **{"agent_id": made.agent_id, **fields})
        )

        assert refused.fields == (field,)
        assert await tenant.client.agents.get(made.agent_id) == made

    async def test_of_an_unknown_agent_is_not_found(self, tenant: Tenant) -> None:
        agent_id = str(uuid4())

        refused = await failure(self.update(tenant, "model", agent_id=agent_id))

        assert refused.metadata == (("id", agent_id), ("resource", "agent"))


class TestScopes:
    @pytest.mark.parametrize("name", sorted(ADMIN_ONLY))
    async def test_of_the_installation_are_not_a_tenants(self, tenant: Tenant, name: str) -> None:
        refused = await failure(tenant.raw.call(name, await VALID[name](tenant)))

        assert (refused.code, refused.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "SCOPE_MISSING",
        )

    @pytest.mark.parametrize("name", sorted(set(unary_methods()) - ADMIN_ONLY - ANY_KEY))
    async def test_are_needed_by_every_method(
        self, tenant: Tenant, data_only: Raw, admin_only: Raw, name: str
    ) -> None:
        allowed, refused = (
            (admin_only, data_only) if name in TENANT_ADMIN else (data_only, admin_only)
        )
        request = await VALID[name](tenant)

        denied = await failure(refused.call(name, request))
        await allowed.call(name, request)

        assert (denied.code, denied.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "SCOPE_MISSING",
        )
        assert dict(denied.metadata)["required"]

    @pytest.mark.parametrize("name", sorted(ANY_KEY))
    async def test_of_either_kind_read_agents(
        self, tenant: Tenant, data_only: Raw, admin_only: Raw, name: str
    ) -> None:
        request = await VALID[name](tenant)

        assert await data_only.call(name, request)
        assert await admin_only.call(name, request)

    @pytest.mark.parametrize(
        "name", sorted(set(unary_methods()) - ADMIN_ONLY - TENANT_ADMIN - ANY_KEY)
    )
    async def test_of_the_installation_read_no_tenants_data(
        self, tenant: Tenant, admin: Raw, name: str
    ) -> None:
        refused = await failure(admin.call(name, await VALID[name](tenant)))

        assert refused.reason == "SCOPE_MISSING"

    async def test_a_key_may_not_name_another_tenant(
        self, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        request = pb.ListApiKeysRequest(tenant_id=other_tenant.tenant_id)

        refused = await failure(tenant.raw.call("ListApiKeys", request))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("tenant_id",))


def flipped(secret: str) -> str:
    return f"{secret[:-1]}{'A' if secret[-1] != 'A' else 'B'}"


class TestWrongKeys:
    async def refusal(self, tenant: Tenant, *metadata: tuple[str, str]) -> Failure:
        return await failure(tenant.raw.call("ListConversations", metadata=metadata))

    async def test_of_every_kind_answer_alike(self, tenant: Tenant, other_tenant: Tenant) -> None:
        secret = tenant.api_key
        stranger = b"".join([uuid4().bytes, b"x" * 32])
        swapped = UUID(other_tenant.tenant_id).bytes + base64.urlsafe_b64decode(secret[7:])[16:]
        revoked = await key_with(tenant, "data")
        await tenant.client.keys.revoke(revoked.api_key.api_key_id)
        wrong = [
            (),
            ("authorization", ""),
            ("authorization", "Bearer"),
            ("authorization", "Bearer "),
            ("authorization", f"Basic {secret}"),
            ("authorization", secret),
            ("authorization", f"Bearer {flipped(secret)}"),
            ("authorization", f"Bearer {secret}x"),
            ("authorization", f"Bearer {secret} {secret}"),
            ("authorization", f"Bearer annals_{base64.urlsafe_b64encode(stranger).decode()}"),
            ("authorization", f"Bearer annals_{base64.urlsafe_b64encode(swapped).decode()}"),
            ("authorization", f"Bearer {revoked.api_key_secret}"),
            ("authorization", f"Bearer {ADMIN_KEY}x"),
            ("authorization", "Bearer annals_%%%"),
            ("authorization", "Bearer " + "x" * 5000),
            ("x-api-key", secret),
        ]

        answers = {await self.refusal(tenant, *([pair] if pair else [])): pair for pair in wrong}

        assert len(answers) == 1, answers
        [refused] = answers
        assert (refused.code, refused.reason, refused.metadata) == (
            grpc.StatusCode.UNAUTHENTICATED,
            "CREDENTIALS_INVALID",
            (),
        )
        assert secret not in refused.message

    async def test_without_any_no_method_answers(self, tenant: Tenant) -> None:
        for name in unary_methods():
            refused = await failure(tenant.raw.call(name, b"", metadata=()))
            assert refused.reason == "CREDENTIALS_INVALID", name

    async def test_expire_in_use(self, storage: RunningStorage, tenant: Tenant) -> None:
        moment = datetime.now(UTC) + timedelta(seconds=0.6)
        key = await key_with(tenant, "data", expire_time=moment)
        async with storage.raw(key.api_key_secret) as raw:
            await raw.call("ListConversations")

            async def refused() -> Any:
                try:
                    return await raw.call("ListConversations")
                except Exception as error:  # noqa: BLE001
                    return error.failure.reason  # type: ignore[attr-defined]

            await eventually(refused, lambda answer: answer == "CREDENTIALS_INVALID")

        assert datetime.now(UTC) >= moment

    async def test_revoked_are_refused_at_once(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        key = await key_with(tenant, "data")
        async with storage.raw(key.api_key_secret) as raw:
            await raw.call("ListConversations")

            revoked = await tenant.client.keys.revoke(key.api_key.api_key_id)

            refused = await failure(raw.call("ListConversations"))
        again = await tenant.client.keys.revoke(key.api_key.api_key_id)
        assert refused.reason == "CREDENTIALS_INVALID"
        assert revoked.HasField("revoke_time")
        assert again == revoked

    async def test_must_not_be_made_expired(self, tenant: Tenant) -> None:
        request = pb.CreateApiKeyRequest(scopes=[res.API_KEY_SCOPE_DATA])
        request.expire_time.FromDatetime(datetime.now(UTC) - timedelta(seconds=1))

        refused = await failure(tenant.raw.call("CreateApiKey", request))

        assert refused.fields == ("expire_time",)


class TestSecrets:
    async def test_are_kept_as_hashes_only(self, postgres: LocalPostgres, tenant: Tenant) -> None:
        secret = tenant.api_key
        raw = base64.urlsafe_b64decode(secret.removeprefix("annals_"))[16:]
        await append(tenant.raw, "", user("content that is found by the same search"))

        dump = everything(postgres)

        assert "content that is found by the same search" in dump
        assert secret not in dump
        assert secret.removeprefix("annals_") not in dump
        assert raw.hex() not in dump

    async def test_are_not_listed(self, tenant: Tenant) -> None:
        keys = [key async for key in tenant.client.keys.list(tenant_id=tenant.tenant_id)]

        assert keys
        assert tenant.api_key not in repr(keys)

    async def test_never_reach_logs_or_errors(self, tenant: Tenant) -> None:
        secret = tenant.api_key
        with capture_logs() as logs:
            made = await key_with(tenant, "data")
            await append(tenant.raw, "", user("private words"))
            refusals = [
                await failure(tenant.raw.call("GetConversation", b"\xff")),
                await failure(
                    tenant.raw.call(
                        "ListConversations",
                        metadata=[("authorization", f"Bearer {flipped(secret)}")],
                    )
                ),
            ]

        text = repr(logs) + repr(refusals)
        assert logs
        for hidden in (secret, flipped(secret), made.api_key_secret, ADMIN_KEY, "private words"):
            assert hidden not in text
        assert secret not in repr(tenant.client)


def everything(postgres: LocalPostgres) -> str:
    """All rows of all tables of every schema of ours, as text."""
    with psycopg.connect(postgres.admin_url) as connection:
        names = connection.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname IN ('annals', 'public')"
        ).fetchall()
        return "\n".join(
            str(row[0])
            for (name,) in names
            for row in connection.execute(f"SELECT t::text FROM {name} AS t").fetchall()
        )
