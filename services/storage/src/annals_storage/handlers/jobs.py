"""JobService."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from annals.storage.v1 import job_service_pb2 as pb
from annals.storage.v1 import job_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError, PageTokenInvalidError
from annals_common.paging import cut_page, decode_page_token, encode_page_token
from annals_common.validation import (
    bounded,
    enums,
    optional_uuid,
    page_size,
    require_text,
    text,
    uuids,
)
from annals_storage.domain.jobs import JobKind, JobTotals, LeasedJob, ParkedJob
from annals_storage.handlers.access import (
    data_tenant,
    leased_job,
    own_administered_tenant,
    require_worker,
)
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.jobs import JobBacklogs, LeaseStore, ParkedCursor

MAX_JOBS = 100
MIN_LEASE_SECONDS, MAX_LEASE_SECONDS, DEFAULT_LEASE_SECONDS = 5, 600, 60
MAX_NAME_CHARS = 200
MAX_ERROR_CHARS = 500
MAX_RETRIED = 1_000
MAX_GENERATION = 2**63 - 1
KINDS: dict[int, JobKind] = {
    pb.JOB_KIND_TOPICS: JobKind.TOPICS,
    pb.JOB_KIND_SUMMARIES: JobKind.SUMMARIES,
}
KIND_NUMBERS: dict[JobKind, Any] = {kind: number for number, kind in KINDS.items()}


class JobHandler(pb_grpc.JobServiceServicer):
    """Translates; what leases are is in postgres/migrations/0008_pre_jobs.sql."""

    def __init__(self, leases: LeaseStore, backlogs: JobBacklogs) -> None:
        self._leases, self._backlogs = leases, backlogs

    async def LeaseJobs(self, request: pb.LeaseJobsRequest, context: Any) -> pb.LeaseJobsResponse:
        require_worker("LeaseJobs")
        bounded(request.max_jobs, "max_jobs", low=0, high=MAX_JOBS)
        kinds = enums(request.kinds, KINDS, "kinds")
        if not kinds:
            raise FieldInvalidError("kinds", "is required: the kinds of jobs the worker knows")
        found = await self._leases.lease(
            text(request.worker_name, "worker_name", max_chars=MAX_NAME_CHARS),
            kinds,
            limit=request.max_jobs or 1,
            lease=_lease(request.lease_seconds),
        )
        return pb.LeaseJobsResponse(jobs=[_leased_message(job) for job in found])

    async def HeartbeatJob(
        self, request: pb.HeartbeatJobRequest, context: Any
    ) -> pb.HeartbeatJobResponse:
        tenant_id, held = leased_job("HeartbeatJob")
        until = await self._leases.heartbeat(tenant_id, held, lease=_lease(request.lease_seconds))
        return pb.HeartbeatJobResponse(lease_expire_time=timestamp_message(until))

    async def CompleteJob(
        self, request: pb.CompleteJobRequest, context: Any
    ) -> pb.CompleteJobResponse:
        tenant_id, held = leased_job("CompleteJob")
        is_done = await self._leases.complete(tenant_id, held, _generation(request.generation))
        return pb.CompleteJobResponse(is_due_again=not is_done)

    async def FailJob(self, request: pb.FailJobRequest, context: Any) -> pb.FailJobResponse:
        tenant_id, held = leased_job("FailJob")
        error = require_text(request.error, "error", max_chars=MAX_ERROR_CHARS)
        generation = _generation(request.generation)
        return pb.FailJobResponse(
            is_parked=await self._leases.fail(tenant_id, held, generation, error)
        )

    async def ReleaseJob(
        self, request: pb.ReleaseJobRequest, context: Any
    ) -> pb.ReleaseJobResponse:
        await self._leases.release(*leased_job("ReleaseJob"))
        return pb.ReleaseJobResponse()

    async def GetJobStatus(
        self, request: pb.GetJobStatusRequest, context: Any
    ) -> pb.GetJobStatusResponse:
        tenant_id = data_tenant("GetJobStatus")
        conversation_id = optional_uuid(request.conversation_id, "conversation_id")
        found = await self._backlogs.backlog(tenant_id, conversation_id)
        return pb.GetJobStatusResponse(backlogs=[_backlog_message(item) for item in found])

    async def ListParkedJobs(
        self, request: pb.ListParkedJobsRequest, context: Any
    ) -> pb.ListParkedJobsResponse:
        tenant_id = own_administered_tenant("ListParkedJobs")
        limit = page_size(request.page_size)
        cursor = _cursor(decode_page_token(request, tenant_id, parts=3))
        found = await self._backlogs.parked(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListParkedJobsResponse(jobs=[_parked_message(job) for job in page])
        if has_more:
            last = page[-1]
            parts = (last.parked_at.isoformat(), str(last.subject), last.kind.value)
            response.next_page_token = encode_page_token(request, tenant_id, parts)
        return response

    async def RetryParkedJobs(
        self, request: pb.RetryParkedJobsRequest, context: Any
    ) -> pb.RetryParkedJobsResponse:
        tenant_id = own_administered_tenant("RetryParkedJobs")
        wanted = uuids(request.conversation_ids, "conversation_ids", max_items=MAX_RETRIED)
        return pb.RetryParkedJobsResponse(
            retried_count=await self._backlogs.retry(tenant_id, wanted)
        )


def _lease(seconds: int) -> timedelta:
    if seconds:
        bounded(seconds, "lease_seconds", low=MIN_LEASE_SECONDS, high=MAX_LEASE_SECONDS)
    return timedelta(seconds=seconds or DEFAULT_LEASE_SECONDS)


def _generation(value: int) -> int:
    bounded(value, "generation", low=1, high=MAX_GENERATION)
    return value


def _cursor(parts: tuple[str, ...] | None) -> ParkedCursor | None:
    if parts is None:
        return None
    try:
        moment, subject, kind = parts
        return datetime.fromisoformat(moment), UUID(subject), JobKind(kind)
    except ValueError as error:
        raise PageTokenInvalidError from error


def _leased_message(job: LeasedJob) -> pb.LeasedJob:
    return pb.LeasedJob(
        kind=KIND_NUMBERS[job.kind],
        conversation_id=str(job.subject),
        tenant_id=str(job.tenant_id),
        generation=job.generation,
        attempts=job.attempts,
        lease_expire_time=timestamp_message(job.leased_until),
        token=job.token,
    )


def _backlog_message(totals: JobTotals) -> pb.JobBacklog:
    return pb.JobBacklog(
        kind=KIND_NUMBERS[totals.kind],
        pending_count=totals.pending,
        parked_count=totals.parked,
        lag_ms=max(0, int(totals.lag_seconds * 1000)),
    )


def _parked_message(job: ParkedJob) -> pb.ParkedJob:
    return pb.ParkedJob(
        kind=KIND_NUMBERS[job.kind],
        conversation_id=str(job.subject),
        attempts=job.attempts,
        error=job.error,
        park_time=timestamp_message(job.parked_at),
    )
