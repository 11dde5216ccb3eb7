"""JobService of storage: leases by the worker key, everything else by the token of a job."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from annals.storage.v1 import job_service_pb2 as pb
from annals.storage.v1 import job_service_pb2_grpc
from annals_common.errors import DependencyUnavailableError
from annals_context.clients.calling import call
from annals_context.ports import Caller
from annals_context.workers.jobs import Job

TIMEOUT_S = 30.0
HEALTH_TIMEOUT_S = 1.5
KINDS: dict[str, pb.JobKind.ValueType] = {
    "topics": pb.JOB_KIND_TOPICS,
    "summaries": pb.JOB_KIND_SUMMARIES,
}
KIND_NAMES = {number: name for name, number in KINDS.items()}


class GrpcJobs:
    """`Jobs` behind a channel."""

    def __init__(self, channel: grpc.aio.Channel, worker_key: str, *, worker_name: str) -> None:
        self._stub = job_service_pb2_grpc.JobServiceStub(channel)
        self._health = health_pb2_grpc.HealthStub(channel)
        self._worker_key, self._worker_name = worker_key, worker_name

    async def lease(self, kinds: Sequence[str], *, limit: int, lease_seconds: int) -> list[Job]:
        """Lease at most `limit` jobs of these kinds."""
        request = pb.LeaseJobsRequest(
            kinds=[KINDS[kind] for kind in kinds],
            max_jobs=limit,
            lease_seconds=lease_seconds,
            worker_name=self._worker_name,
        )
        response = await call(self._stub.LeaseJobs, request, _caller(self._worker_key))
        return [_job_from(job) for job in response.jobs]

    async def heartbeat(self, job: Job, *, lease_seconds: int) -> None:
        """Have the lease last so long from now on."""
        request = pb.HeartbeatJobRequest(lease_seconds=lease_seconds)
        await call(self._stub.HeartbeatJob, request, job.caller)

    async def complete(self, job: Job) -> None:
        """Say that the job is done, as of its generation."""
        request = pb.CompleteJobRequest(generation=job.generation)
        await call(self._stub.CompleteJob, request, job.caller)

    async def fail(self, job: Job, error: str) -> None:
        """Say that it failed, and why."""
        request = pb.FailJobRequest(generation=job.generation, error=error)
        await call(self._stub.FailJob, request, job.caller)

    async def release(self, job: Job) -> None:
        """Give it back as if it had not been leased."""
        await call(self._stub.ReleaseJob, pb.ReleaseJobRequest(), job.caller)

    async def check(self) -> None:
        """Raise unless storage answers and serves."""
        request = health_pb2.HealthCheckRequest()
        answer = await self._health.Check(request, timeout=HEALTH_TIMEOUT_S)
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise DependencyUnavailableError("storage")


def _caller(secret: str) -> Caller:
    return Caller(f"Bearer {secret}", request_id=str(uuid4()), timeout_s=TIMEOUT_S)


def _job_from(job: pb.LeasedJob) -> Job:
    return Job(
        kind=KIND_NAMES[job.kind],
        conversation_id=job.conversation_id,
        tenant_id=job.tenant_id,
        generation=job.generation,
        attempts=job.attempts,
        caller=_caller(job.token),
    )
