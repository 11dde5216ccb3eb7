"""What background workers reach: with the worker key nothing, with a job's token its tenant."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from tests.support.appending import append, ids
from tests.support.end_users import metadata_of
from tests.support.raw import Raw, failure, methods
from tests.support.scratch import run
from tests.support.storage import WORKER_KEY, RunningStorage, Tenant, fresh_tenant
from tests.support.valid_requests import VALID, WORKER_ONLY, send
from tests.support.workers import as_job, due, lease

from annals.storage.v1 import conversation_service_pb2 as conversation_pb
from annals.storage.v1 import event_service_pb2 as event_pb
from annals.storage.v1 import job_service_pb2 as pb
from annals_client import user
from annals_local.postgres import LocalPostgres
from annals_storage.domain.jobs import OF_EVERY_JOB, OF_KIND, TOKEN_PREFIX

TOKENED = WORKER_ONLY - {"LeaseJobs"}
ALLOWED = OF_EVERY_JOB.union(*OF_KIND.values())


@dataclass(frozen=True, slots=True)
class Leased:
    """A tenant with a conversation, and the lease of a job of it."""

    tenant: Tenant
    room: str
    event_id: str
    job: Any
    raw: Raw

    def acting(self, raw: Raw) -> Tenant:
        """The same tenant, its raw channel another one."""
        return Tenant(self.tenant.tenant_id, self.tenant.api_key, self.tenant.client, raw)


@pytest.fixture
async def leased(storage: RunningStorage, postgres: LocalPostgres) -> AsyncIterator[Leased]:
    async with fresh_tenant(storage) as tenant:
        stored = await append(tenant.raw, "", user("what a worker may read"))
        await due(postgres, tenant)
        [job] = await lease(storage)
        async with as_job(storage, job.token) as raw:
            yield Leased(tenant, stored.conversation_id, ids(stored)[0], job, raw)


@pytest.fixture
async def worker(storage: RunningStorage) -> AsyncIterator[Raw]:
    async with storage.raw(WORKER_KEY) as raw:
        yield raw


async def refusals(caller: Tenant, owner: Tenant, names: frozenset[str]) -> dict[str, str]:
    """Why valid requests of these methods, about what is the owner's, are refused."""
    return {
        name: (await failure(send(caller, name, await VALID[name](owner)))).reason
        for name in sorted(names)
    }


async def test_the_worker_key_alone_does_nothing_but_lease(worker: Raw, tenant: Tenant) -> None:
    others = frozenset(methods()) - {"LeaseJobs"}

    refused = await refusals(Tenant(tenant.tenant_id, "", tenant.client, worker), tenant, others)

    assert refused == dict.fromkeys(others, "SCOPE_MISSING")


async def test_a_job_calls_what_is_listed_and_nothing_else(leased: Leased) -> None:
    others = frozenset(methods()) - ALLOWED

    refused = await refusals(leased.acting(leased.raw), leased.tenant, others)

    assert refused == dict.fromkeys(others, "SCOPE_MISSING")


async def test_a_job_reads_its_tenants_conversation(leased: Leased) -> None:
    listed = event_pb.ListEventsRequest(conversation_id=leased.room)

    found = await leased.raw.call("ListEvents", listed)

    assert leased.job.tenant_id == leased.tenant.tenant_id
    assert leased.job.conversation_id == leased.room
    assert [event.event_id for event in found.events] == [leased.event_id]


async def test_a_job_of_one_tenant_reads_nothing_of_another(
    leased: Leased, other_tenant: Tenant
) -> None:
    theirs = await append(other_tenant.raw, "", user("not for this worker"))
    get = event_pb.GetEventRequest(conversation_id=theirs.conversation_id, event_id=ids(theirs)[0])
    room = conversation_pb.GetConversationRequest(conversation_id=theirs.conversation_id)
    batch = event_pb.BatchGetEventsRequest(event_ids=ids(theirs))

    refused = [
        await failure(leased.raw.call("GetEvent", get)),
        await failure(leased.raw.call("GetConversation", room)),
    ]

    assert {each.reason for each in refused} == {"RESOURCE_NOT_FOUND"}
    assert not (await leased.raw.call("BatchGetEvents", batch)).events


@pytest.mark.parametrize("end", ["expired", "completed", "released", "failed", "erased"])
async def test_a_token_is_good_until_its_lease_ends(
    leased: Leased, postgres: LocalPostgres, end: str
) -> None:
    generation = leased.job.generation
    if end == "expired":
        ended = "UPDATE annals.jobs SET leased_until = now() WHERE tenant_id = %s"
        run(postgres.admin_url, ended, [leased.tenant.tenant_id])
    elif end == "completed":
        await leased.raw.call("CompleteJob", pb.CompleteJobRequest(generation=generation))
    elif end == "released":
        await leased.raw.call("ReleaseJob", pb.ReleaseJobRequest())
    elif end == "failed":
        failed = pb.FailJobRequest(generation=generation, error="ValueError")
        await leased.raw.call("FailJob", failed)
    else:
        await leased.tenant.client.erasure.conversation(leased.room)

    room = event_pb.ListEventsRequest(conversation_id=leased.room)
    refused = [
        await failure(leased.raw.call("ListEvents", room)),
        await failure(leased.raw.call("HeartbeatJob", pb.HeartbeatJobRequest())),
    ]

    assert {each.reason for each in refused} == {"CREDENTIALS_INVALID"}


async def test_a_token_is_its_tenants_whatever_it_says(
    leased: Leased, storage: RunningStorage, other_tenant: Tenant
) -> None:
    """The tenant of a token is part of what is looked up, not believed."""
    token = leased.job.token
    # The last character has bits to spare; the one after it in the alphabet differs in those alone.
    forged = [token[:-1] + ("A" if token[-1] != "A" else "Q"), token[:20], "annals_job_", token * 2]
    forged.append(token[:-1] + chr(ord(token[-1]) + 1))
    for wrong in (*forged, of_tenant(token, other_tenant.tenant_id)):
        async with as_job(storage, wrong) as raw:
            refused = await failure(raw.call("ReleaseJob", pb.ReleaseJobRequest()))
            assert refused.reason == "CREDENTIALS_INVALID"


def of_tenant(token: str, tenant_id: str) -> str:
    """The same token with another tenant's id."""
    encoded = token.removeprefix(TOKEN_PREFIX)
    raw = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    swapped = UUID(tenant_id).bytes + raw[16:]
    return TOKEN_PREFIX + base64.urlsafe_b64encode(swapped).decode().rstrip("=")


async def test_workers_act_for_no_end_user(leased: Leased, storage: RunningStorage) -> None:
    for secret in (WORKER_KEY, leased.job.token):
        name = "LeaseJobs" if secret == WORKER_KEY else "ReleaseJob"
        call = leased.raw.call(name, await VALID[name](leased.tenant), metadata=metadata_of(
            secret, user_id="alice"))  # fmt: skip
        refused = await failure(call)
        assert (refused.reason, refused.fields) == ("FIELD_INVALID", ("annals-user-id",))


async def test_a_key_of_a_tenant_leases_nothing(tenant: Tenant, admin: Raw) -> None:
    for raw in (tenant.raw, admin):
        refused = await failure(raw.call("LeaseJobs", await VALID["LeaseJobs"](tenant)))
        assert refused.reason == "SCOPE_MISSING"


@pytest.mark.parametrize("name", sorted(TOKENED))
async def test_jobs_are_settled_by_their_own_token_alone(tenant: Tenant, name: str) -> None:
    refused = await failure(tenant.raw.call(name, await VALID[name](tenant)))

    assert refused.reason == "SCOPE_MISSING"
