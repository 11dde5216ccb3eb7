"""What a failed call raises.

Every error is an `AnnalsRpcError`; the subclasses stand for the reasons of
`annals.storage.v1.ErrorReason`. Failures of the transport, which carry no reason, map by
their gRPC code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

ERROR_DOMAIN = "annals"


@dataclass(frozen=True, slots=True)
class Violation:
    """One field that is wrong: its path as in the request, and what to do."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Details:
    """What the `google.rpc.Status` of a failure carries. Empty when it carries none."""

    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_after_s: float | None = None


class AnnalsClientError(Exception):
    """Base of everything this package raises on purpose."""


class AnnalsRpcError(AnnalsClientError):
    """A call failed.

    `code` is gRPC's, `reason` a name of `ErrorReason` or "" when the failure is the
    transport's, `method` such as "AppendEvents", `service` "storage" or "context",
    `retry_after_s` what the server asked to wait, in seconds.
    """

    def __init__(
        self, code: grpc.StatusCode, message: str, details: Details, *, method: str, service: str
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.reason, self.metadata = details.reason, dict(details.metadata)
        self.violations, self.retry_after_s = details.violations, details.retry_after_s
        self.method, self.service = method, service

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"


class InvalidArgumentError(AnnalsRpcError):
    """A field is missing, malformed or out of range; `violations` name it."""


class LimitExceededError(InvalidArgumentError):
    """A field, list or message is larger than its limit."""


class PageTokenInvalidError(InvalidArgumentError):
    """A page token is malformed or belongs to another query."""


class ViewInvalidError(InvalidArgumentError):
    """The view was changed, or made for somebody else: prepare the context anew."""


class ImportInvalidError(InvalidArgumentError):
    """A file to import is not what an export writes; nothing of it was stored."""

    @property
    def line(self) -> int:
        """The line that is wrong, from 1."""
        return int(self.metadata.get("line", 0))


class UnauthenticatedError(AnnalsRpcError):
    """No key was sent, or it is unknown, expired or revoked."""


class UserTokenInvalidError(UnauthenticatedError):
    """The user token is malformed, forged, expired or signed by an unknown key."""


class PermissionDeniedError(AnnalsRpcError):
    """The key is valid and may not make this call."""


class UserTokenRequiredError(PermissionDeniedError):
    """Only an end user proved by a signed token may make this call."""


class NotFoundError(AnnalsRpcError):
    """Nothing by this id is visible to the caller."""


class AlreadyExistsError(AnnalsRpcError):
    """A resource of this id exists with other content."""


class FailedPreconditionError(AnnalsRpcError):
    """The state of a resource does not allow the call."""


class IdempotencyKeyReusedError(FailedPreconditionError):
    """The key or request id was used with another payload; nothing was stored."""


class ConversationNotActiveError(FailedPreconditionError):
    """The conversation is completed or archived and takes no events."""


class ToolCallNotFoundError(FailedPreconditionError):
    """A tool result names a call that the conversation does not hold."""


class EventDeletedError(FailedPreconditionError):
    """The event was deleted; restore it first."""


class EventErasedError(FailedPreconditionError):
    """The event was erased: nothing but its place is left."""


class RelationshipCycleError(FailedPreconditionError):
    """A relationship would lead from something back to itself."""


class SessionAlreadyMergedError(FailedPreconditionError):
    """The session belongs to another user."""


class ProviderLogsDisabledError(FailedPreconditionError):
    """The conversation's agent keeps no provider logs."""


class NotConfiguredError(FailedPreconditionError):
    """The server lacks a setting that this call needs."""


class BudgetTooSmallError(FailedPreconditionError):
    """No context fits the budget."""

    @property
    def minimum_budget_tokens(self) -> int:
        """The smallest budget that works for this request, in tokens."""
        return int(self.metadata.get("minimum_budget_tokens", 0))


class ViewExpiredError(FailedPreconditionError):
    """The view is too old: prepare the context anew."""


class AbortedError(AnnalsRpcError):
    """Somebody else changed the resource first."""


class SeqMismatchError(AbortedError):
    """`expected_last_seq` does not hold: read the new events, then decide."""

    @property
    def last_seq(self) -> int:
        """The conversation's last seq."""
        return int(self.metadata.get("last_seq", 0))


class VersionMismatchError(AbortedError):
    """The resource has moved on since it was read."""


class DeadlineExceededError(AnnalsRpcError):
    """The deadline passed before the work was done."""


class UnavailableError(AnnalsRpcError):
    """The server, or what it depends on, does not answer."""


class OverloadedError(AnnalsRpcError):
    """The server is at one of its limits."""


class WatcherTooSlowError(OverloadedError):
    """A watch took its events more slowly than they came."""


class CancelledError(AnnalsRpcError):
    """The call was cancelled."""


class UnimplementedError(AnnalsRpcError):
    """The server does not know the method."""


class InternalError(AnnalsRpcError):
    """A defect of the server."""

    @property
    def incident_id(self) -> str:
        """Names the incident in the server's logs; "" when there is none."""
        return self.metadata.get("incident_id", "")


class _Kinds:
    by_reason: ClassVar[Mapping[str, type[AnnalsRpcError]]] = {
        "LIMIT_EXCEEDED": LimitExceededError,
        "PAGE_TOKEN_INVALID": PageTokenInvalidError,
        "IDEMPOTENCY_KEY_REUSED": IdempotencyKeyReusedError,
        "SEQ_MISMATCH": SeqMismatchError,
        "CONVERSATION_NOT_ACTIVE": ConversationNotActiveError,
        "TOOL_CALL_NOT_FOUND": ToolCallNotFoundError,
        "VERSION_MISMATCH": VersionMismatchError,
        "BUDGET_TOO_SMALL": BudgetTooSmallError,
        "VIEW_INVALID": ViewInvalidError,
        "VIEW_EXPIRED": ViewExpiredError,
        "EVENT_DELETED": EventDeletedError,
        "EVENT_ERASED": EventErasedError,
        "RELATIONSHIP_CYCLE": RelationshipCycleError,
        "SESSION_ALREADY_MERGED": SessionAlreadyMergedError,
        "PROVIDER_LOGS_DISABLED": ProviderLogsDisabledError,
        "NOT_CONFIGURED": NotConfiguredError,
        "IMPORT_INVALID": ImportInvalidError,
        "USER_TOKEN_INVALID": UserTokenInvalidError,
        "USER_TOKEN_REQUIRED": UserTokenRequiredError,
        "WATCHER_TOO_SLOW": WatcherTooSlowError,
    }
    by_code: ClassVar[Mapping[grpc.StatusCode, type[AnnalsRpcError]]] = {
        grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
        grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
        grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
        grpc.StatusCode.NOT_FOUND: NotFoundError,
        grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
        grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
        grpc.StatusCode.ABORTED: AbortedError,
        grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
        grpc.StatusCode.UNAVAILABLE: UnavailableError,
        grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
        grpc.StatusCode.CANCELLED: CancelledError,
        grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
        grpc.StatusCode.INTERNAL: InternalError,
    }


def from_rpc(error: grpc.RpcError, *, method: str, service: str) -> AnnalsRpcError:
    """Turn what grpc raised into an `AnnalsRpcError`."""
    call = cast("grpc.Call", error)
    details = _details(call)
    kind = _Kinds.by_reason.get(details.reason) or _Kinds.by_code.get(call.code(), AnnalsRpcError)
    return kind(call.code(), call.details() or "", details, method=method, service=service)


def _details(call: grpc.Call) -> Details:
    try:
        status = rpc_status.from_call(call)
    except ValueError:
        # A proxy rewrote the code: what it says is not about this status any more.
        return Details()
    return _unpacked(status.details) if status is not None else Details()


def _unpacked(packed: Any) -> Details:
    info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    found = {message.DESCRIPTOR: _unpack(packed, message) for message in (info, request, retry)}
    ours = info.domain == ERROR_DOMAIN
    return Details(
        reason=info.reason if ours else "",
        metadata=dict(info.metadata) if ours else {},
        violations=tuple(Violation(v.field, v.description) for v in request.field_violations),
        retry_after_s=_seconds(retry) if found[retry.DESCRIPTOR] else None,
    )


def _unpack(packed: Any, message: Any) -> bool:
    return any(item.Unpack(message) for item in packed)


def _seconds(retry: error_details_pb2.RetryInfo) -> float:
    return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)
