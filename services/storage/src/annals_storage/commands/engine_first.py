"""Asks the vector engine, and PostgreSQL instead when it does not answer in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from prometheus_client import Counter, Gauge

from annals_common.errors import EngineUnavailableError

VECTOR_ENGINE = "vector_engine"
"""The engine did not answer: PostgreSQL found the hits, by their words."""
MAX_FAILURES = 3
"""In a row; then the engine is left alone."""
PAUSE_SECONDS = 5.0
"""How long it is left alone before one search asks it again."""
SHARE = 0.5
"""Of the time left to the caller, how much the engine may use: the rest must do without it."""
FAIR_SECONDS = 0.25
"""An engine that was given less is not blamed for being too slow."""
FALLBACKS = Counter(
    "annals_search_fallbacks_total",
    "Searches that PostgreSQL answered instead of the vector engine.",
    ["reason"],
)
BREAKER_OPEN = Gauge("annals_search_breaker_open", "1 while searches leave the engine alone.")
T = TypeVar("T")


class EngineBreaker:
    """Whether the engine is worth asking: not for a while after several failures in a row."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._asks_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the engine is left alone, save by one search now and then."""
        return self._failures >= MAX_FAILURES

    def allows(self) -> bool:
        """Whether to ask. After a pause one search asks, and the next after another pause."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._asks_at:
            return False
        self._asks_at = now + PAUSE_SECONDS
        return True

    def succeeded(self) -> None:
        """It answered."""
        self._failures = 0
        BREAKER_OPEN.set(0)

    def failed(self) -> None:
        """It did not."""
        self._failures += 1
        self._asks_at = self._clock() + PAUSE_SECONDS
        BREAKER_OPEN.set(int(self.is_open))


class EngineFirst:
    """Runs a search in the engine or, when that fails, in PostgreSQL. One for each process."""

    def __init__(self, breaker: EngineBreaker, *, timeout_seconds: float) -> None:
        self._breaker, self._timeout_seconds = breaker, timeout_seconds

    async def __call__(
        self,
        ask: Callable[[], Awaitable[T]],
        instead: Callable[[], Awaitable[T]],
        *,
        expires_at: float | None,
        degraded: list[str],
    ) -> T:
        """Return what `ask` returns, else what `instead` does, and then say so in `degraded`.

        `expires_at`: when the caller stops waiting, by time.monotonic; None: never.
        """
        if not self._breaker.allows():
            return await _fall_back("breaker", instead, degraded)
        limit_seconds = self._limit(expires_at)
        try:
            async with asyncio.timeout(limit_seconds):
                found = await ask()
        except EngineUnavailableError:
            self._breaker.failed()
            return await _fall_back("unavailable", instead, degraded)
        except TimeoutError:
            if limit_seconds >= FAIR_SECONDS:
                self._breaker.failed()
            return await _fall_back("timeout", instead, degraded)
        self._breaker.succeeded()
        return found

    def _limit(self, expires_at: float | None) -> float:
        if expires_at is None:
            return self._timeout_seconds
        return min(self._timeout_seconds, max(0.0, expires_at - time.monotonic()) * SHARE)


async def _fall_back(reason: str, instead: Callable[[], Awaitable[T]], degraded: list[str]) -> T:
    FALLBACKS.labels(reason).inc()
    degraded.append(VECTOR_ENGINE)
    return await instead()
