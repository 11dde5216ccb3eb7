"""What tenants and operators see of background work that was given up."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from asyncio.subprocess import PIPE

from tests.support.appending import append
from tests.support.cli import Run
from tests.support.raw import failure
from tests.support.scratch import run as run_sql
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.workers import due

from annals.storage.v1 import job_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres

_PARK = """
UPDATE annals.jobs SET parked_at = now(), attempts = 10, last_error = 'MemoryError in fit, line 1'
WHERE tenant_id = %s AND kind = 'topics'
"""


async def parked_room(tenant: Tenant, postgres: LocalPostgres, others: int = 0) -> str:
    """A conversation whose topics were given up, beside so many others of the tenant."""
    stored = await append(tenant.raw, "", user("words"))
    await due(postgres, tenant, jobs=2 * (others + 1))
    await asyncio.to_thread(run_sql, postgres.admin_url, _PARK, [tenant.tenant_id])
    return str(stored.conversation_id)


async def operate(postgres: LocalPostgres, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_storage", "jobs", *arguments, stdout=PIPE, stderr=PIPE,
        env={"PATH": os.environ["PATH"], "ANNALS_STORAGE_DATABASE_URL": postgres.app_url},
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    return stdout.decode() + stderr.decode()


async def test_the_tenant_lists_what_was_given_up_and_has_it_tried_again(
    run: Run, tenant: Tenant, storage: RunningStorage, postgres: LocalPostgres
) -> None:
    room = await parked_room(tenant, postgres)
    async with fresh_tenant(storage) as other:
        assert [job async for job in other.client.jobs.parked()] == []
        assert await other.client.jobs.retry([room]) == 0

    status = await run("jobs", "status", "--conversation", room, "--json")
    shown = await run("jobs", "parked")
    [listed] = await run("jobs", "parked", "--json")
    retried = await run("jobs", "retry", room, "--json")

    counts = {it["kind"]: (it["pending_count"], it["parked_count"]) for it in status["backlogs"]}
    assert counts == {"JOB_KIND_SUMMARIES": ("1", "0"), "JOB_KIND_TOPICS": ("0", "1")}
    assert f"topics\t{room}\t10\tMemoryError in fit, line 1" in shown.stdout
    assert listed["conversation_id"] == room
    assert retried == {"retried_count": "1"} or retried == {"retried_count": 1}
    assert (await run("jobs", "retry")).stdout == "tried again  0\n"


async def test_pages_of_what_was_given_up_fit_together(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    rooms = {await parked_room(tenant, postgres, others) for others in range(3)}

    found = [job.conversation_id async for job in tenant.client.jobs.parked(page_size=1)]
    wrong = pb.ListParkedJobsRequest(page_token="x")
    refused = await failure(tenant.raw.call("ListParkedJobs", wrong))

    assert (set(found), len(found)) == (rooms, 3)
    assert refused.reason == "PAGE_TOKEN_INVALID"


async def test_the_operator_lists_and_retries_those_of_all_tenants(
    tenant: Tenant, postgres: LocalPostgres
) -> None:
    room = await parked_room(tenant, postgres)

    everybodys = await operate(postgres, "parked")
    said = await operate(postgres, "parked", "--tenant", tenant.tenant_id, "--retry")

    assert room in {json.loads(line)["subject"] for line in everybodys.splitlines()}
    assert json.loads(said.splitlines()[0])["kind"] == "topics"
    assert said.endswith("1 are tried again\n")
    assert [job async for job in tenant.client.jobs.parked()] == []


async def test_the_operator_makes_worker_keys(postgres: LocalPostgres) -> None:
    made = json.loads(await operate(postgres, "key"))

    digest = hashlib.sha256(made["worker_key"].encode()).hexdigest()
    assert made["worker_key"].startswith("annals_worker_")
    assert made["worker_key_sha256"] == digest
