"""What cannot be mirrored is given up, listed with its cause, and tried again when asked."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from typing import Any
from uuid import uuid4

from tests.support.appending import append, ids
from tests.support.cli import Run
from tests.support.indexing import indexed
from tests.support.raw import failure
from tests.support.scratch import as_tenant
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals.storage.v1 import index_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.postgres.outbox import MAX_ATTEMPTS

_POISON = "UPDATE annals.events SET usage = '{\"a lighthouse\": 1}' WHERE event_id = %s"
"""A row no version of ours writes, and none can read."""
_HEAL = "UPDATE annals.events SET usage = NULL WHERE event_id = %s"
_LAST_ATTEMPT = """
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, attempts)
SELECT tenant_id, 'event', event_id, conversation_id, %s FROM annals.events WHERE event_id = ANY(%s)
"""


async def sql(postgres: LocalPostgres, tenant: Tenant, statement: str, *params: Any) -> None:
    await asyncio.to_thread(
        as_tenant, postgres.admin_url, tenant.tenant_id, statement, list(params)
    )


async def parked_event(tenant: Tenant, postgres: LocalPostgres) -> tuple[str, list[str]]:
    """A conversation of three events, the second of which could not be mirrored for long."""
    stored = await append(tenant.raw, "", user("one"), user("two, a lighthouse"), user("three"))
    await indexed(tenant)
    await sql(postgres, tenant, _POISON, ids(stored)[1])
    await sql(postgres, tenant, _LAST_ATTEMPT, MAX_ATTEMPTS - 1, ids(stored))
    await eventually(
        tenant.client.index.status, lambda now: (now.pending_count, now.parked_count) == (0, 1)
    )
    return stored.conversation_id, ids(stored)


async def listed(tenant: Tenant) -> list[pb.ParkedEntry]:
    return [entry async for entry in tenant.client.index.parked(page_size=1)]


async def test_a_poisoned_row_is_listed_with_its_cause_while_the_others_go_on(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room, events = await parked_event(tenant, postgres)

    [entry] = await listed(tenant)

    assert (entry.kind, entry.entry_id) == (pb.PARKED_ENTRY_KIND_EVENT, events[1])
    assert (entry.conversation_id, entry.attempts) == (room, MAX_ATTEMPTS)
    assert entry.error.startswith("TypeError in ")
    assert "lighthouse" not in entry.error
    assert entry.HasField("park_time")
    await append(tenant.raw, room, user("later"))
    await indexed(tenant)
    assert (await tenant.client.index.status()).point_count == 4


async def test_it_is_tried_again_once_its_cause_is_gone(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    _, events = await parked_event(tenant, postgres)
    await sql(postgres, tenant, _HEAL, events[1])

    retried = [await tenant.client.index.retry([events[1], str(uuid4())]) for _ in range(2)]

    await indexed(tenant)
    status = await tenant.client.index.status()
    assert retried == [1, 0]
    assert await listed(tenant) == []
    assert (status.parked_count, status.chunk_count, status.point_count) == (0, 3, 3)


async def test_nobody_lists_or_retries_what_is_another_tenants(
    tenant: Tenant, storage: RunningStorage, postgres: LocalPostgres
) -> None:
    _, events = await parked_event(tenant, postgres)
    async with fresh_tenant(storage) as other:
        assert await listed(other) == []
        assert await other.client.index.retry(events) == 0
        assert await other.client.index.retry() == 0

    assert len(await listed(tenant)) == 1


async def test_only_who_administers_the_tenant_sees_them(
    tenant: Tenant, storage: RunningStorage
) -> None:
    created = await tenant.client.keys.create("plain", tenant_id=tenant.tenant_id)
    async with storage.raw(created.api_key_secret) as raw:
        refused = [
            await failure(raw.call("ListParkedEntries", pb.ListParkedEntriesRequest())),
            await failure(raw.call("RetryParkedEntries", pb.RetryParkedEntriesRequest())),
        ]

    assert {each.reason for each in refused} == {"SCOPE_MISSING"}


async def test_the_command_lists_and_retries(
    run: Run, tenant: Tenant, postgres: LocalPostgres
) -> None:
    _, events = await parked_event(tenant, postgres)

    shown = await run("index", "parked")
    before = await run("index", "parked", "--json")
    await sql(postgres, tenant, _HEAL, events[1])
    retried = await run("index", "retry", "--json")

    assert events[1] in shown.stdout
    assert "TypeError" in shown.stdout
    assert [entry["entry_id"] for entry in before] == [events[1]]
    assert retried == {"retried_count": 1}
    assert "tried again  0" in (await run("index", "retry", events[1])).stdout.replace(":", "")


async def test_the_operator_lists_and_retries_those_of_all_tenants(
    tenant: Tenant, storage: RunningStorage, postgres: LocalPostgres
) -> None:
    async with fresh_tenant(storage) as other:
        events = [(await parked_event(each, postgres))[1][1] for each in (tenant, other)]
        for each, event_id in zip((tenant, other), events, strict=True):
            await sql(postgres, each, _HEAL, event_id)

        out, _ = await operate(postgres)
        of_one, said = await operate(postgres, "--tenant", other.tenant_id, "--retry")
        await indexed(other)

        assert set(events) <= {json.loads(line)["key"] for line in out.splitlines()}
        [entry] = [json.loads(line) for line in of_one.splitlines()]
        assert (entry["tenant_id"], entry["key"]) == (other.tenant_id, events[1])
        assert said == "1 are tried again\n"
        assert await listed(other) == []
        assert len(await listed(tenant)) == 1


async def operate(postgres: LocalPostgres, *arguments: str) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_storage", "parked", *arguments, stdout=PIPE, stderr=PIPE,
        env={"PATH": os.environ["PATH"], "ANNALS_STORAGE_DATABASE_URL": postgres.app_url},
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    return stdout.decode(), stderr.decode()
