"""Turns domain errors into `google.rpc.Status`, the same way everywhere.

Source: google.aip.dev/193.
"""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from annals_common.errors import AnnalsError

ERROR_DOMAIN = "annals"
DETAILS_METADATA_KEY = "grpc-status-details-bin"


def to_status(error: AnnalsError) -> status_pb2.Status:
    """Build the status with ErrorInfo and, where they apply, BadRequest and RetryInfo."""
    status = status_pb2.Status(code=error.code.value[0], message=error.message)
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(
            reason=error.reason, domain=ERROR_DOMAIN, metadata=error.metadata
        )
    )
    if error.violations:
        status.details.add().Pack(_bad_request(error))
    if error.retry_after_ms is not None:
        status.details.add().Pack(_retry_info(error.retry_after_ms))
    return status


def trailing_metadata(error: AnnalsError) -> tuple[tuple[str, bytes], ...]:
    """Return the metadata in which gRPC carries the status details."""
    return ((DETAILS_METADATA_KEY, to_status(error).SerializeToString()),)


def _bad_request(error: AnnalsError) -> error_details_pb2.BadRequest:
    violations = [
        error_details_pb2.BadRequest.FieldViolation(field=item.field, description=item.description)
        for item in error.violations
    ]
    return error_details_pb2.BadRequest(field_violations=violations)


def _retry_info(retry_after_ms: int) -> error_details_pb2.RetryInfo:
    delay = Duration()
    delay.FromMilliseconds(retry_after_ms)
    return error_details_pb2.RetryInfo(retry_delay=delay)
