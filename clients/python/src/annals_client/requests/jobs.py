"""Background work on conversations."""

from __future__ import annotations

from collections.abc import Sequence

from annals.storage.v1 import job_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call


def status(
    *, conversation_id: str = "", timeout: float | None = None
) -> Call[pb.GetJobStatusResponse]:
    """What waits by kind, for the tenant or for one conversation."""
    request = pb.GetJobStatusRequest(conversation_id=conversation_id)
    return safe_call(lambda stubs: stubs.jobs.GetJobStatus, request, timeout)


def parked(
    *, page_size: int = 0, limit: int | None = None, timeout: float | None = None
) -> Pages[pb.ParkedJob]:
    """Jobs that failed too often, newest first. Needs a key with TENANT_ADMIN."""
    request = pb.ListParkedJobsRequest(page_size=page_size)
    call = safe_call(lambda stubs: stubs.jobs.ListParkedJobs, request, timeout)
    return Pages(call, lambda answer: answer.jobs, limit)


def retry(conversation_ids: Sequence[str] = (), *, timeout: float | None = None) -> Call[int]:
    """Have the parked jobs of these conversations, or all, tried again; return how many.

    Safe to repeat. Needs a key with TENANT_ADMIN.
    """
    request = pb.RetryParkedJobsRequest(conversation_ids=conversation_ids)
    call = safe_call(lambda stubs: stubs.jobs.RetryParkedJobs, request, timeout)
    return call.map(lambda answer: answer.retried_count)
