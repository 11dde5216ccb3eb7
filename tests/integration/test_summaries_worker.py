"""Summaries as background work: made by the worker, with the token of its job alone."""

from __future__ import annotations

from tests.support.appending import append
from tests.support.raw import failure
from tests.support.storage import RunningStorage, Tenant
from tests.support.summaries import put_request, ranges_of, summary_of
from tests.support.waiting import eventually
from tests.support.workers import as_job, due, lease, working

from annals.storage.v1 import job_service_pb2 as pb
from annals_client import user
from annals_common.channels import open_aio_channel
from annals_context.app_workers import commands
from annals_context.settings import ContextSettings
from annals_local.postgres import LocalPostgres


async def test_a_worker_brings_summaries_up_to_date(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    stored = await append(own_tenant.raw, "", *(user(f"Ferry {n} leaves") for n in range(70)))
    await due(own_postgres, own_tenant)
    channel = open_aio_channel(own_storage.address, None)
    todo = {"summaries": commands(channel, ContextSettings())["summaries"]}

    async with working(own_storage, todo):
        found = await eventually(
            lambda: ranges_of(own_tenant, stored.conversation_id), lambda ranges: len(ranges) == 6
        )
    await channel.close(None)

    assert {(first, last) for _, first, last in found} == {(1, 64), (65, 70)}


async def test_a_job_stores_summaries_of_its_own_conversation_alone(
    own_storage: RunningStorage, own_tenant: Tenant, own_postgres: LocalPostgres
) -> None:
    other = await append(own_tenant.raw, "", user("one"))
    await due(own_postgres, own_tenant)
    jobs = await lease(own_storage, pb.JOB_KIND_SUMMARIES)
    job = next(job for job in jobs if job.conversation_id == other.conversation_id)
    room = (await append(own_tenant.raw, "", user("two"))).conversation_id
    own = await put_request(own_tenant, other.conversation_id, summary_of(1, 1))
    foreign = await put_request(own_tenant, room, summary_of(1, 1))

    async with as_job(own_storage, job.token) as raw:
        await raw.call("PutSummaries", own)
        refused = await failure(raw.call("PutSummaries", foreign))

    assert refused.reason == "SCOPE_MISSING"
    assert await ranges_of(own_tenant, room) == []
