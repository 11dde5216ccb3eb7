"""Retention: policies, and what `annals-storage maintain` makes of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, listed, state
from tests.support.planting import objects_with
from tests.support.raw import Raw, failure
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant
from tests.support.valid_requests import logged_conversation
from tests.support.waiting import eventually

from annals.storage.v1 import erasure_service_pb2 as erasure_pb
from annals.storage.v1 import lifecycle_service_pb2 as pb
from annals.storage.v1 import provider_service_pb2 as provider_pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.app_lifecycle import lifecycle
from annals_storage.commands.mirror_erasure import EngineErasure, OutboxErasure
from annals_storage.commands.retaining import Maintain
from annals_storage.domain.cold_storage import encode, folder_of
from annals_storage.postgres.outbox import PostgresOutbox

DAY = timedelta(days=1)


async def set_policy(raw: Raw, **days: Any) -> pb.RetentionPolicy:
    request = pb.SetRetentionPolicyRequest(policy=pb.RetentionPolicy(**days))
    stored: pb.RetentionPolicy = (await raw.call("SetRetentionPolicy", request)).policy
    return stored


def maintenance(storage: RunningStorage, *, after: timedelta = timedelta(0)) -> Maintain:
    """A maintenance that takes place so much later."""
    adapters = storage.adapters
    parts = lifecycle(adapters.database, EngineErasure(adapters.vectors), adapters.cold)
    return Maintain(parts.maintenance(), now=lambda: datetime.now(UTC) + after)


async def maintain(storage: RunningStorage, tenant: Tenant, *, after: timedelta) -> dict[str, int]:
    return await maintenance(storage, after=after)(UUID(tenant.tenant_id))


def done(counts: dict[str, int]) -> dict[str, int]:
    """What is not zero, but for the tenant."""
    return {name: count for name, count in counts.items() if count and name != "tenants"}


class TestPolicies:
    async def test_are_stored_in_whole_read_listed_and_removed(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")
        own = await set_policy(tenant.raw, archive_after_days=30, search_log_days=7)
        theirs = await set_policy(tenant.raw, agent_id=agent.agent_id, erase_after_days=365)
        replaced = await set_policy(tenant.raw, cold_after_days=60)

        got = (await tenant.raw.call("GetRetentionPolicy")).policy
        found = (await tenant.raw.call("ListRetentionPolicies")).policies
        await tenant.raw.call("DeleteRetentionPolicy")
        gone = await failure(tenant.raw.call("GetRetentionPolicy"))
        left = (await tenant.raw.call("ListRetentionPolicies")).policies

        assert (own.archive_after_days, own.search_log_days) == (30, 7)
        assert got == replaced
        assert not got.HasField("archive_after_days")
        assert [one.agent_id for one in found] == ["", agent.agent_id]
        assert gone.reason == "RESOURCE_NOT_FOUND"
        assert list(left) == [theirs]

    async def test_are_listed_by_pages(self, tenant: Tenant) -> None:
        await set_policy(tenant.raw, archive_after_days=1)
        for _ in range(3):
            agent = await tenant.client.agents.create("a")
            await set_policy(tenant.raw, agent_id=agent.agent_id, archive_after_days=1)
        request = pb.ListRetentionPoliciesRequest(page_size=3)
        first = await tenant.raw.call("ListRetentionPolicies", request)
        request.page_token = first.next_page_token

        second = await tenant.raw.call("ListRetentionPolicies", request)

        assert (len(first.policies), len(second.policies)) == (3, 1)
        assert not second.next_page_token

    @pytest.mark.parametrize(
        "name",
        [
            "archive_after_days",
            "cold_after_days",
            "erase_after_days",
            "erase_deleted_after_days",
            "provider_log_days",
            "search_log_days",
        ],
    )
    @pytest.mark.parametrize("days", [0, -1, 36_501, 2**31 - 1])
    async def test_take_no_impossible_days(self, tenant: Tenant, name: str, days: int) -> None:
        refused = await failure(set_policy(tenant.raw, **{name: days}))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", (f"policy.{name}",))

    @pytest.mark.parametrize("earlier", ["archive_after_days", "cold_after_days"])
    @pytest.mark.parametrize("erase", [29, 30])
    async def test_erase_last(self, tenant: Tenant, earlier: str, erase: int) -> None:
        refused = await failure(set_policy(tenant.raw, **{earlier: 30}, erase_after_days=erase))

        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("policy.erase_after_days",))

    async def test_of_the_tenant_alone_limit_the_search_log(self, tenant: Tenant) -> None:
        agent = await tenant.client.agents.create("a")

        refused = await failure(set_policy(tenant.raw, agent_id=agent.agent_id, search_log_days=7))

        assert refused.fields == ("policy.search_log_days",)

    async def test_of_unknown_agents_are_refused(
        self, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        theirs = await other_tenant.client.agents.create("theirs")
        reasons = {
            (await failure(set_policy(tenant.raw, agent_id=one, archive_after_days=1))).reason
            for one in (theirs.agent_id, str(uuid4()), str(UUID(int=0)))
        }

        assert reasons == {"RESOURCE_NOT_FOUND"}

    async def test_must_be_given(self, tenant: Tenant) -> None:
        refused = await failure(tenant.raw.call("SetRetentionPolicy"))

        assert refused.fields == ("policy",)


class TestMaintenance:
    async def test_archives_what_is_old_enough(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        await set_policy(tenant.raw, archive_after_days=10)
        room = (await append(tenant.raw, "", user("hi"))).conversation_id

        early = await maintain(storage, tenant, after=9 * DAY)
        late = await maintain(storage, tenant, after=11 * DAY)
        again = await maintain(storage, tenant, after=12 * DAY)

        assert (done(early), done(late), done(again)) == ({}, {"archived_conversations": 1}, {})
        assert (await state(tenant.raw, room)).status == res.CONVERSATION_STATUS_ARCHIVED

    async def test_moves_erases_and_spares_as_the_agent_has_it(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        patient = await tenant.client.agents.create("patient")
        await set_policy(tenant.raw, cold_after_days=5, erase_after_days=20)
        await set_policy(tenant.raw, agent_id=patient.agent_id, erase_after_days=100)
        plain = (await append(tenant.raw, "", user("plain"))).conversation_id
        made = await tenant.client.conversations.create(agent_id=patient.agent_id)
        await append(tenant.raw, made.conversation_id, user("patient"))

        moved = await maintain(storage, tenant, after=6 * DAY)
        still = [event.message.content for event in await listed(tenant, plain)]
        erased = await maintain(storage, tenant, after=21 * DAY)

        assert (moved["cold_conversations"], moved["cold_events"]) == (2, 2)
        assert still == ["plain"]
        assert done(erased) == {"erased_conversations": 1}
        gone = await failure(state(tenant.raw, plain))
        assert gone.reason == "RESOURCE_NOT_FOUND"
        assert len(await listed(tenant, made.conversation_id)) == 1
        assert objects_with(storage.data_dir / "cold" / tenant.tenant_id / plain, "plain") == []

    async def test_erases_what_was_deleted(self, storage: RunningStorage, tenant: Tenant) -> None:
        await set_policy(tenant.raw, erase_deleted_after_days=3)
        kept = (await append(tenant.raw, "", user("kept"))).conversation_id
        deleted = (await append(tenant.raw, "", user("deleted"))).conversation_id
        await tenant.client.conversations.delete(deleted)

        early = await maintain(storage, tenant, after=2 * DAY)
        late = await maintain(storage, tenant, after=4 * DAY)

        assert (done(early), done(late)) == ({}, {"erased_conversations": 1})
        assert (await state(tenant.raw, kept)).event_count == 1
        receipts = (await tenant.raw.call("ListErasureReceipts")).receipts
        assert [one.subject for one in receipts] == [deleted]
        verified = await tenant.raw.call(
            "VerifyErasure",
            erasure_pb.VerifyErasureRequest(receipt_id=receipts[0].receipt_id),
        )
        assert verified.verified

    async def test_removes_old_logs(
        self, storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        room = await logged_conversation(tenant)
        log = provider_pb.ProviderLog(conversation_id=room, provider="p", request_json="{}")
        await tenant.raw.call(
            "CreateProviderLog", provider_pb.CreateProviderLogRequest(provider_log=log)
        )
        await tenant.client.search.events("anything")

        async def searches() -> int:
            [row] = run(
                postgres.admin_url,
                "SELECT count(*) AS n FROM annals.search_log WHERE tenant_id = %s",
                [tenant.tenant_id],
            )
            return int(row["n"])

        await eventually(searches, lambda count: count == 1)
        early = await maintain(storage, tenant, after=29 * DAY)
        month = await maintain(storage, tenant, after=31 * DAY)
        await set_policy(tenant.raw, search_log_days=40)
        later = await maintain(storage, tenant, after=41 * DAY)

        assert (done(early), done(month), done(later)) == (
            {},
            {"provider_logs": 1},
            {"search_log": 1},
        )

    async def test_removes_orphans(self, storage: RunningStorage, tenant: Tenant) -> None:
        room = (await append(tenant.raw, "", user("hi"))).conversation_id
        objects = storage.adapters.cold._objects
        assert objects is not None
        folder = folder_of(UUID(tenant.tenant_id), UUID(room))
        await objects.write(f"{folder}/{uuid4()}.jsonl.gz", encode([]))

        counts = await maintain(storage, tenant, after=DAY)

        assert done(counts) == {"orphan_objects": 1}
        assert await objects.names(folder) == []

    async def test_only_tells_in_a_dry_run(self, storage: RunningStorage, tenant: Tenant) -> None:
        await set_policy(tenant.raw, archive_after_days=1, cold_after_days=1, erase_after_days=2)
        room = (await append(tenant.raw, "", user("hi"))).conversation_id
        before = await state(tenant.raw, room)

        foreseen = await maintenance(storage, after=3 * DAY).dry_run(UUID(tenant.tenant_id))

        assert done(foreseen) == {
            "archived_conversations": 1,
            "cold_conversations": 1,
            "erased_conversations": 1,
        }
        assert await state(tenant.raw, room) == before

    async def test_side_by_side_is_done_once(self, storage: RunningStorage, tenant: Tenant) -> None:
        await set_policy(tenant.raw, archive_after_days=1, cold_after_days=2, erase_after_days=3)
        for _ in range(5):
            await append(tenant.raw, "", user("hi"))

        reports = await asyncio.gather(
            *(maintain(storage, tenant, after=4 * DAY) for _ in range(3))
        )

        assert sum(one["erased_conversations"] for one in reports) == 5
        assert sum(one["tenants"] + one["tenants_busy"] for one in reports) == 3

    async def test_finishes_what_was_interrupted(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        await set_policy(tenant.raw, erase_after_days=1)
        await append(tenant.raw, "", user("hi"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EngineErasure, "erase_conversation", killed)
            with pytest.raises(asyncio.CancelledError):
                await maintain(storage, tenant, after=2 * DAY)

        counts = await maintain(storage, tenant, after=2 * DAY)

        receipts = (await tenant.raw.call("ListErasureReceipts")).receipts
        assert done(counts) == {"resumed_erasures": 1}
        assert len(receipts) == 1
        assert receipts[0].HasField("complete_time")

    async def test_beside_the_engine_waits_for_its_indexer(
        self, storage: RunningStorage, tenant: Tenant
    ) -> None:
        await set_policy(tenant.raw, erase_after_days=1)
        await append(tenant.raw, "", user("hi"))
        await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
        adapters = storage.adapters
        mirror = OutboxErasure(PostgresOutbox(adapters.database))
        parts = lifecycle(adapters.database, mirror, adapters.cold).maintenance()
        later = Maintain(parts, now=lambda: datetime.now(UTC) + 2 * DAY)

        counts = await later(UUID(tenant.tenant_id))

        assert counts["erased_conversations"] == 1
        assert await adapters.vectors.count_points(UUID(tenant.tenant_id)) == 0


async def test_the_command_prints_what_it_did(
    storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant
) -> None:
    await set_policy(tenant.raw, archive_after_days=1)
    room = (await append(tenant.raw, "", user("hi"))).conversation_id
    run(
        postgres.admin_url,
        "UPDATE annals.conversations SET active_at = now() - interval '2 days' "
        "WHERE conversation_id = %s",
        [room],
    )

    foreseen = await command(storage, postgres, "--tenant", tenant.tenant_id, "--dry-run")
    counts = await command(storage, postgres, "--tenant", tenant.tenant_id)

    assert foreseen["archived_conversations"] == counts["archived_conversations"] == 1
    assert counts["tenants"] == 1
    assert (await state(tenant.raw, room)).status == res.CONVERSATION_STATUS_ARCHIVED


async def command(
    storage: RunningStorage, postgres: LocalPostgres, *arguments: str
) -> dict[str, int]:
    """Run the command beside the service; return its report."""
    environ = {
        "PATH": os.environ["PATH"],
        "ANNALS_STORAGE_DATABASE_URL": postgres.app_url,
        "ANNALS_STORAGE_DATA_DIR": str(storage.data_dir),
        "ANNALS_STORAGE_COLD_STORAGE_URL": f"file://{Path(storage.data_dir)}/cold",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_storage", "maintain", *arguments,
        env=environ, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    report: dict[str, int] = json.loads(stdout)
    return report


async def killed(*_: Any) -> dict[str, int]:
    raise asyncio.CancelledError
