"""A worker: what it leases, how it keeps leases, how it ends."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.support.appending import append
from tests.support.scratch import run
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually
from tests.support.workers import due, lease, working

from annals_client import user
from annals_common.errors import ResourceNotFoundError
from annals_context.ports import Caller
from annals_local.postgres import LocalPostgres


@dataclass(slots=True)
class Gated:
    """A command that waits until it may end, and tells what it was asked for."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None

    async def __call__(self, _caller: Caller, conversation_id: str) -> None:
        self.begun[conversation_id] += 1
        await self.gate.wait()
        if self.error:
            raise self.error


def opened(error: Exception | None = None) -> Gated:
    command = Gated(error=error)
    command.gate.set()
    return command


async def rows(postgres: LocalPostgres, tenant: Tenant) -> list[dict[str, Any]]:
    statement = "SELECT * FROM annals.jobs WHERE tenant_id = %s ORDER BY kind"
    return await asyncio.to_thread(run, postgres.admin_url, statement, [tenant.tenant_id])


async def room_with_jobs(tenant: Tenant, postgres: LocalPostgres) -> str:
    stored = await append(tenant.raw, "", user("something to work on"))
    await due(postgres, tenant)
    return str(stored.conversation_id)


async def test_runs_what_a_kind_stands_for_and_leaves_other_kinds(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = await room_with_jobs(own_tenant, own_postgres)
    command = opened()

    async with working(own_storage, {"topics": command}):
        left = await eventually(lambda: rows(own_postgres, own_tenant), lambda it: len(it) == 1)

    assert command.begun == {room: 1}
    assert (left[0]["kind"], left[0]["attempts"]) == ("summaries", 0)


async def test_a_failure_is_told_without_content(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    await room_with_jobs(own_tenant, own_postgres)

    async with working(own_storage, {"topics": opened(ValueError("words of a user"))}):
        [_, failed] = await eventually(
            lambda: rows(own_postgres, own_tenant), lambda it: it[1]["last_error"] is not None
        )

    assert failed["last_error"].startswith("ValueError in __call__, line ")
    assert (failed["lease_hash"], failed["attempts"]) == (None, 1)


async def test_of_a_conversation_that_is_gone_nothing_is_left_to_do(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = await room_with_jobs(own_tenant, own_postgres)
    gone = opened(ResourceNotFoundError("conversation", room))

    async with working(own_storage, {"topics": gone}):
        await eventually(lambda: rows(own_postgres, own_tenant), lambda it: len(it) == 1)


async def test_a_lease_lasts_as_long_as_the_work_and_is_given_back_at_the_end(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = await room_with_jobs(own_tenant, own_postgres)
    command = Gated()

    async with working(own_storage, {"topics": command}, lease_seconds=5):
        before = await eventually(
            lambda: rows(own_postgres, own_tenant), lambda it: it[1]["leased_until"] is not None
        )
        await eventually(
            lambda: rows(own_postgres, own_tenant),
            lambda it: it[1]["leased_until"] > before[1]["leased_until"],
        )
        assert await lease(own_storage) == []
    [_, given_back] = await rows(own_postgres, own_tenant)

    assert command.begun == {room: 1}
    assert (given_back["lease_hash"], given_back["attempts"]) == (None, 0)


async def test_a_worker_that_lost_its_lease_stops(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    room = await room_with_jobs(own_tenant, own_postgres)
    first, second = Gated(), opened()

    async with working(own_storage, {"topics": first}, lease_seconds=5):
        await eventually(lambda: asyncio.sleep(0, first.begun[room]), bool)
        ended = "UPDATE annals.jobs SET leased_until = now() WHERE tenant_id = %s"
        await asyncio.to_thread(run, own_postgres.admin_url, ended, [own_tenant.tenant_id])
        async with working(own_storage, {"topics": second}):
            await eventually(lambda: rows(own_postgres, own_tenant), lambda it: len(it) == 1)

    assert first.begun[room] + second.begun[room] >= 2


async def test_takes_no_more_than_it_can_hold(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    for _ in range(4):
        await append(own_tenant.raw, "", user("one of four"))
    await due(own_postgres, own_tenant, jobs=8)
    command = Gated()

    async with working(own_storage, {"topics": command}, concurrency=3):
        await eventually(lambda: asyncio.sleep(0, len(command.begun)), lambda now: now == 3)
        leased = [r for r in await rows(own_postgres, own_tenant) if r["lease_hash"]]
        assert len(leased) == 3
        command.gate.set()
        await eventually(lambda: rows(own_postgres, own_tenant), lambda it: len(it) == 4)
