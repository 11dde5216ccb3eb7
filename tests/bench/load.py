"""Concurrent callers for a while, and what they saw."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.bench.harness import percentile

Call = Callable[[int], Awaitable[object]]
"""One call of the caller with this number."""


@dataclass(slots=True)
class Load:
    """Calls that were finished within `seconds`, and how long each took."""

    seconds: float
    latencies_ms: list[float] = field(default_factory=list)

    @property
    def calls_per_s(self) -> float:
        """Finished calls per second."""
        return len(self.latencies_ms) / self.seconds

    def latency_ms(self, percent: float) -> float:
        """Return a percentile of the latencies."""
        return percentile(self.latencies_ms, percent)


async def drive(call: Call, *, callers: int, seconds: float) -> Load:
    """Have each caller call again and again until the time is over."""
    started = time.perf_counter()
    load = Load(seconds)

    async def repeat(caller: int) -> None:
        while (begun := time.perf_counter()) - started < seconds:
            await call(caller)
            load.latencies_ms.append((time.perf_counter() - begun) * 1000)

    await asyncio.gather(*(repeat(caller) for caller in range(callers)))
    load.seconds = time.perf_counter() - started
    return load
