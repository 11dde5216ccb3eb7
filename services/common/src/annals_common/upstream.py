"""Errors of another Annals service, passed on as they are."""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from annals_common.errors import (
    AnnalsError,
    DeadlineExceededError,
    DependencyUnavailableError,
    FieldViolation,
)
from annals_common.status import ERROR_DOMAIN


class UpstreamError(AnnalsError):
    """What the other service said, with its own code and reason."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def from_rpc_error(error: grpc.aio.AioRpcError, service: str) -> AnnalsError:
    """Return the error to raise in place of a failed call to `service`."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    if status is not None and status.details:
        return _passed_on(error.code(), status)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceededError()
    return DependencyUnavailableError(service)


def _passed_on(code: grpc.StatusCode, status: status_pb2.Status) -> AnnalsError:
    passed = UpstreamError(code, status.message)
    for detail in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info) and info.domain == ERROR_DOMAIN:
            passed.reason, passed.metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            passed.violations = tuple(
                FieldViolation(item.field, item.description) for item in bad.field_violations
            )
        elif detail.Unpack(retry):
            passed.retry_after_ms = retry.retry_delay.ToMilliseconds()
    return passed
