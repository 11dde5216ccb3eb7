"""Domain errors: each knows its gRPC code, its reason and what to do about it.

Handlers and commands raise these; one interceptor turns them into a
`google.rpc.Status` (see `annals_common.interceptors.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc

MAX_ECHOED_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that is wrong: its path as in the request, and what to do."""

    field: str
    description: str


class AnnalsError(Exception):
    """Base of all errors that reach a caller.

    `metadata` values are strings and become `ErrorInfo.metadata`.
    """

    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    reason: str = "INTERNAL"
    retry_after_ms: int | None = None

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[FieldViolation] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)


class FieldInvalidError(AnnalsError):
    """A field is missing, malformed or out of range."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "FIELD_INVALID"

    def __init__(self, field: str, description: str, value: object = None) -> None:
        metadata = {"field": field}
        if value is not None:
            metadata["value"] = echo(value)
        super().__init__(
            f"{field}: {description}",
            metadata=metadata,
            violations=[FieldViolation(field, description)],
        )


class LimitExceededError(AnnalsError):
    """A field, list or message is larger than allowed. `actual` and `limit` share a unit."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "LIMIT_EXCEEDED"

    def __init__(self, field: str, *, limit: int, actual: int, unit: str) -> None:
        description = f"has {actual} {unit}, at most {limit} are allowed"
        super().__init__(
            f"{field}: {description}",
            metadata={"field": field, "limit": str(limit), "actual": str(actual), "unit": unit},
            violations=[FieldViolation(field, description)],
        )


class PageTokenInvalidError(AnnalsError):
    """A page token is malformed or belongs to another query."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "PAGE_TOKEN_INVALID"

    def __init__(self) -> None:
        description = "was not made by this query; start again without a page token"
        super().__init__(
            f"page_token: {description}",
            metadata={"field": "page_token"},
            violations=[FieldViolation("page_token", description)],
        )


class CredentialsInvalidError(AnnalsError):
    """No credentials, or unknown, malformed, expired or revoked ones."""

    code = grpc.StatusCode.UNAUTHENTICATED
    reason = "CREDENTIALS_INVALID"

    def __init__(self) -> None:
        super().__init__("send a valid key as metadata `authorization: Bearer <key>`")


class ScopeMissingError(AnnalsError):
    """Valid credentials that may not make this call."""

    code = grpc.StatusCode.PERMISSION_DENIED
    reason = "SCOPE_MISSING"

    def __init__(self, method: str, required: str) -> None:
        super().__init__(
            f"{method} needs {required}", metadata={"method": method, "required": required}
        )


class ResourceNotFoundError(AnnalsError):
    """Nothing by this id is visible to the caller."""

    code = grpc.StatusCode.NOT_FOUND
    reason = "RESOURCE_NOT_FOUND"

    def __init__(self, resource: str, resource_id: str) -> None:
        super().__init__(
            f"no {resource} {echo(resource_id)}",
            metadata={"resource": resource, "id": echo(resource_id)},
        )


class ResourceAlreadyExistsError(AnnalsError):
    """A resource of this client-supplied id exists with other content."""

    code = grpc.StatusCode.ALREADY_EXISTS
    reason = "RESOURCE_ALREADY_EXISTS"

    def __init__(self, resource: str, resource_id: str) -> None:
        super().__init__(
            f"{resource} {resource_id} exists with other content; choose another id",
            metadata={"resource": resource, "id": resource_id},
        )


class IdempotencyKeyReusedError(AnnalsError):
    """A key was used before with another payload; nothing was stored."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "IDEMPOTENCY_KEY_REUSED"

    def __init__(self, key: str, *, kind: str = "idempotency_key", resource_id: str = "") -> None:
        super().__init__(
            f"{kind} {echo(key)} was used with another payload; use a new one for new content",
            metadata={kind: echo(key), "resource_id": resource_id},
        )


class SeqMismatchError(AnnalsError):
    """`expected_last_seq` does not hold: somebody else wrote first."""

    code = grpc.StatusCode.ABORTED
    reason = "SEQ_MISMATCH"

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(
            f"expected_last_seq is {expected}, the conversation is at {actual}; "
            "read the events after the expected seq and decide again",
            metadata={"expected_last_seq": str(expected), "last_seq": str(actual)},
        )


class ConversationNotActiveError(AnnalsError):
    """The conversation is completed or archived and takes no events."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "CONVERSATION_NOT_ACTIVE"

    def __init__(self, conversation_id: str, status: str) -> None:
        super().__init__(
            f"conversation {conversation_id} is {status}; set its status to ACTIVE to write again",
            metadata={"conversation_id": conversation_id, "status": status},
        )


class ToolCallNotFoundError(AnnalsError):
    """A tool result names a call the conversation does not hold."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "TOOL_CALL_NOT_FOUND"

    def __init__(self, field: str, tool_call_id: str) -> None:
        description = "names no tool call earlier in the conversation; append the call first"
        super().__init__(
            f"{field}: {description}",
            metadata={"field": field, "tool_call_id": echo(tool_call_id)},
            violations=[FieldViolation(field, description)],
        )


class VersionMismatchError(AnnalsError):
    """The resource has moved on since it was read."""

    code = grpc.StatusCode.ABORTED
    reason = "VERSION_MISMATCH"

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(
            f"version is {actual}, not {expected}; read the resource again",
            metadata={"expected_version": str(expected), "version": str(actual)},
        )


class BudgetTooSmallError(AnnalsError):
    """No context fits. `minimum` is the smallest budget that works, in tokens."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "BUDGET_TOO_SMALL"

    def __init__(self, *, budget: int, minimum: int) -> None:
        super().__init__(
            f"budget_tokens {budget} is too small; the smallest that works is {minimum}",
            metadata={"budget_tokens": str(budget), "minimum_budget_tokens": str(minimum)},
            violations=[FieldViolation("budget_tokens", f"must be at least {minimum}")],
        )


class DeadlineExceededError(AnnalsError):
    """The deadline passed before the work was done."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"

    def __init__(self) -> None:
        super().__init__("the deadline passed before the work was done")


class DependencyUnavailableError(AnnalsError):
    """PostgreSQL, the vector engine or storage does not answer, or the server drains."""

    code = grpc.StatusCode.UNAVAILABLE
    reason = "DEPENDENCY_UNAVAILABLE"
    retry_after_ms = 500

    def __init__(self, dependency: str) -> None:
        super().__init__(
            f"{dependency} does not answer; retry with backoff",
            metadata={"dependency": dependency},
        )


class ColdStorageUnavailableError(DependencyUnavailableError):
    """The words of old events cannot be read: an outage, or one missing or damaged object."""

    def __init__(self) -> None:
        super().__init__("cold storage")


class OverloadedError(AnnalsError):
    """The server is at one of its limits."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "OVERLOADED"
    retry_after_ms = 1000

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; retry with backoff")


class EventDeletedError(AnnalsError):
    """The event was deleted and must be restored first."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "EVENT_DELETED"

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"event {event_id} is deleted; restore it first", metadata={"event_id": event_id}
        )


class EventErasedError(AnnalsError):
    """The event was erased: nothing but its place is left."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "EVENT_ERASED"

    def __init__(self, event_id: str) -> None:
        super().__init__(
            f"event {event_id} was erased and cannot be changed", metadata={"event_id": event_id}
        )


class RelationshipCycleError(AnnalsError):
    """A relationship would lead from something to itself."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "RELATIONSHIP_CYCLE"

    def __init__(self, relationship_type: str, source: str) -> None:
        super().__init__(
            f"{relationship_type} would lead from {echo(source)} back to itself",
            metadata={"type": relationship_type, "source": echo(source)},
        )


class SessionAlreadyMergedError(AnnalsError):
    """The session belongs to another user."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "SESSION_ALREADY_MERGED"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {echo(session_id)} was merged into another user; begin a new session",
            metadata={"session_id": echo(session_id)},
        )


class UserTokenInvalidError(AnnalsError):
    """A user token that is malformed, forged, expired or of an unknown key."""

    code = grpc.StatusCode.UNAUTHENTICATED
    reason = "USER_TOKEN_INVALID"

    def __init__(self) -> None:
        super().__init__("send a valid signed token as metadata `annals-user-token`")


class UserTokenRequiredError(AnnalsError):
    """A call that only an end user proved by a signed token may make."""

    code = grpc.StatusCode.PERMISSION_DENIED
    reason = "USER_TOKEN_REQUIRED"

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} needs a signed token in metadata `annals-user-token`",
            metadata={"method": method},
        )


class ImportInvalidError(AnnalsError):
    """An import file that cannot be stored; nothing of it was. `line` counts from 1."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "IMPORT_INVALID"

    def __init__(self, cause: str, *, line: int) -> None:
        super().__init__(
            f"line {line}: {cause}; nothing was stored",
            metadata={"line": str(line), "cause": echo(cause)},
            violations=[FieldViolation("data", f"line {line}: {cause}")],
        )


class WatcherTooSlowError(AnnalsError):
    """A watch that takes its answers more slowly than events arrive."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "WATCHER_TOO_SLOW"
    retry_after_ms = 1000

    def __init__(self) -> None:
        super().__init__("the watch fell behind; resume with its last resume_token")


class ProviderLogsDisabledError(AnnalsError):
    """Provider logs were not enabled for the conversation's agent."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "PROVIDER_LOGS_DISABLED"

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            "set provider_logs_enabled on the conversation's agent first",
            metadata={"agent_id": agent_id},
        )


class NotConfiguredError(AnnalsError):
    """The server lacks a setting this call needs."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "NOT_CONFIGURED"

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"the server runs without {setting}; set it first", metadata={"setting": setting}
        )


def echo(value: object) -> str:
    """Show a caller's value back to them: short, printable, on one line."""
    text = str(value)
    shown = text if len(text) <= MAX_ECHOED_VALUE_CHARS else f"{text[:MAX_ECHOED_VALUE_CHARS]}…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
