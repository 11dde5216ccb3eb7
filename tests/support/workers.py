"""Leases of jobs, of whose tenant a test wants them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.raw import Raw
from tests.support.scratch import run
from tests.support.storage import WORKER_KEY, RunningStorage, Tenant
from tests.support.waiting import eventually

from annals.storage.v1 import job_service_pb2 as pb
from annals_common.channels import open_aio_channel
from annals_context.clients.jobs import GrpcJobs
from annals_context.workers.host import WorkerHost
from annals_context.workers.jobs import Command
from annals_local.postgres import LocalPostgres
from annals_storage.app_adapters import cancelled

_ONLY_OF = """
UPDATE annals.jobs
SET available_at = CASE WHEN tenant_id = %(tenant)s THEN now() ELSE 'infinity' END
"""
_COUNT = "SELECT count(*) AS jobs FROM annals.jobs WHERE tenant_id = %(tenant)s"


async def due(postgres: LocalPostgres, tenant: Tenant, jobs: int = 2) -> None:
    """Wait for that many jobs of a tenant; have them be due now, and nobody else's."""
    params = {"tenant": tenant.tenant_id}

    async def count() -> int:
        [row] = await asyncio.to_thread(run, postgres.admin_url, _COUNT, params)
        return int(row["jobs"])

    await eventually(count, lambda found: found >= jobs)
    await asyncio.to_thread(run, postgres.admin_url, _ONLY_OF, params)


async def lease(
    storage: RunningStorage, *kinds: pb.JobKind.ValueType, seconds: int = 0
) -> list[Any]:
    """Lease what is due of these kinds; none: topics."""
    request = pb.LeaseJobsRequest(
        kinds=kinds or [pb.JOB_KIND_TOPICS], max_jobs=100, lease_seconds=seconds, worker_name="test"
    )
    async with storage.raw(WORKER_KEY) as worker:
        return list((await worker.call("LeaseJobs", request)).jobs)


@asynccontextmanager
async def as_job(storage: RunningStorage, token: str) -> AsyncIterator[Raw]:
    """A channel with the token of a job."""
    async with storage.raw(token) as raw:
        yield raw


@asynccontextmanager
async def working(
    storage: RunningStorage, commands: Mapping[str, Command], **settings: Any
) -> AsyncIterator[GrpcJobs]:
    """A worker at work until the end of the block."""
    channel = open_aio_channel(storage.address, None)
    jobs = GrpcJobs(channel, WORKER_KEY, worker_name="test")
    host = WorkerHost(jobs, commands, **{"concurrency": 2, "idle_seconds": 0.05, **settings})
    running = asyncio.create_task(host.run())
    try:
        yield jobs
    finally:
        await cancelled(running)
        await channel.close(None)
