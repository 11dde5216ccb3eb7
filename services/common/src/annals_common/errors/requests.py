"""What is wrong with a request, or does not fit what is stored."""

from __future__ import annotations

import grpc

from annals_common.errors.base import AnnalsError, FieldViolation, echo


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


class ViewInvalidError(AnnalsError):
    """A view was not made by this installation for this caller: malformed, changed or another's."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "VIEW_INVALID"

    def __init__(self) -> None:
        description = "was not made for you by this installation; prepare the context anew"
        super().__init__(
            f"view: {description}",
            metadata={"field": "view"},
            violations=[FieldViolation("view", description)],
        )


class ViewExpiredError(AnnalsError):
    """A view that is too old. `expired_at`: since when, as ISO 8601."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "VIEW_EXPIRED"

    def __init__(self, expired_at: str) -> None:
        super().__init__(
            f"the view expired at {expired_at}; prepare the context anew",
            metadata={"expire_time": expired_at},
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
    """No context fits. `minimum` is the smallest budget that works, in tokens; `field`: where the
    request says how large it is.
    """

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "BUDGET_TOO_SMALL"

    def __init__(self, *, budget: int, minimum: int, field: str = "budget_tokens") -> None:
        super().__init__(
            f"{field} {budget} is too small; the smallest that works is {minimum}",
            metadata={"budget_tokens": str(budget), "minimum_budget_tokens": str(minimum)},
            violations=[FieldViolation(field, f"must be at least {minimum}")],
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
