"""Decides whether a failed call is tried again, and when.

One layer decides, not two. gRPC's own `retryPolicy` sees status codes only: it cannot read
RetryInfo, cannot tell a SEQ_MISMATCH from another ABORTED, does not know whether this very
call carries a key that makes it safe, and multiplies with any layer above it. So none is
configured; gRPC's transparent retries, of calls that never left this process, stay on.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import grpc

from annals_client.errors import AnnalsRpcError

MAX_ATTEMPTS = 10
"""About ten seconds of waiting: a service that restarts is back by then."""
_MAX_EXPONENT = 30
_FINAL_REASONS = frozenset({"SEQ_MISMATCH", "VERSION_MISMATCH"})
_RETRYABLE_CODES = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter over the upper half of each step."""

    max_attempts: int = MAX_ATTEMPTS
    initial_backoff_s: float = 0.1
    max_backoff_s: float = 2.0

    def backoff_s(self, attempt: int) -> float:
        """Seconds to wait after failed attempt number `attempt`, from 1."""
        doublings = min(attempt - 1, _MAX_EXPONENT)
        step_s = min(self.max_backoff_s, self.initial_backoff_s * 2.0**doublings)
        return step_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing


def is_transient(error: AnnalsRpcError) -> bool:
    """Tell whether the same call may succeed later."""
    if error.reason in _FINAL_REASONS:
        return False
    if error.code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        # Without a reason it is gRPC's own limit of a message's size, which stays.
        return bool(error.reason) or error.retry_after_s is not None
    # A server that shuts down cancels what is still running, without a reason of ours.
    cut_off = error.code is grpc.StatusCode.CANCELLED and not error.reason
    return cut_off or error.code in _RETRYABLE_CODES


class Attempts:
    """The attempts of one call, all within one deadline."""

    def __init__(self, policy: RetryPolicy, *, timeout_s: float, safe: bool) -> None:
        self._policy, self._safe = policy, safe
        self._deadline_s = time.monotonic() + timeout_s
        self._failed = 0

    def remaining_s(self) -> float:
        """Seconds to the deadline, never negative."""
        return max(0.0, self._deadline_s - time.monotonic())

    def delay_after(self, error: AnnalsRpcError) -> float:
        """Seconds to wait before the next attempt. Raises `error` when there is none."""
        self._failed += 1
        if not self._safe or not is_transient(error) or self._failed >= self._policy.max_attempts:
            raise error
        delay_s = max(self._policy.backoff_s(self._failed), error.retry_after_s or 0.0)
        if delay_s >= self.remaining_s():
            raise error
        return delay_s
