"""Who may not do what."""

from __future__ import annotations

import grpc

from annals_common.errors.base import AnnalsError, echo


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


class SessionAlreadyMergedError(AnnalsError):
    """The session belongs to another user."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    reason = "SESSION_ALREADY_MERGED"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {echo(session_id)} was merged into another user; begin a new session",
            metadata={"session_id": echo(session_id)},
        )


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


class JobLeaseLostError(AnnalsError):
    """The lease of a job ended; nothing was written."""

    code = grpc.StatusCode.ABORTED
    reason = "JOB_LEASE_LOST"

    def __init__(self, conversation_id: str, kind: str) -> None:
        super().__init__(
            f"the lease of {kind} of conversation {conversation_id} ended; leave it to others",
            metadata={"conversation_id": conversation_id, "kind": kind},
        )
