"""What takes too long, is not there, or is too much."""

from __future__ import annotations

import grpc

from annals_common.errors.base import AnnalsError


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


class EngineUnavailableError(DependencyUnavailableError):
    """The vector engine does not answer. PostgreSQL may go on without it."""

    def __init__(self) -> None:
        super().__init__("vector engine")


class OverloadedError(AnnalsError):
    """The server is at one of its limits."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "OVERLOADED"
    retry_after_ms = 1000

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; retry with backoff")


class WatcherTooSlowError(AnnalsError):
    """A watch that takes its answers more slowly than events arrive."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "WATCHER_TOO_SLOW"
    retry_after_ms = 1000

    def __init__(self) -> None:
        super().__init__("the watch fell behind; resume with its last resume_token")
