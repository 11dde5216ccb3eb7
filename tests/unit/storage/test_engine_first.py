"""When the engine is asked, how long, and when PostgreSQL answers instead."""

from __future__ import annotations

import asyncio
import time

import pytest

from annals_common.errors import DependencyUnavailableError, EngineUnavailableError
from annals_storage.commands.engine_first import (
    FAIR_SECONDS,
    MAX_FAILURES,
    PAUSE_SECONDS,
    VECTOR_ENGINE,
    EngineBreaker,
    EngineFirst,
)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Engine:
    """Answers, fails or stays silent."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.asked, self.is_silent, self.cancelled = error, 0, False, 0

    async def ask(self) -> str:
        self.asked += 1
        if self.is_silent:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.error is not None:
            raise self.error
        return "engine"


async def instead() -> str:
    return "postgresql"


class Asked:
    """A breaker with its clock, and searches through it."""

    def __init__(self, timeout_seconds: float = 30.0) -> None:
        self.clock, self.engine = Clock(), Engine()
        self.breaker = EngineBreaker(self.clock)
        self.first = EngineFirst(self.breaker, timeout_seconds=timeout_seconds)

    async def __call__(self, seconds_left: float | None = None) -> tuple[str, list[str]]:
        degraded: list[str] = []
        expires_at = None if seconds_left is None else time.monotonic() + seconds_left
        answer = await self.first(
            self.engine.ask, instead, expires_at=expires_at, degraded=degraded
        )
        return answer, degraded

    async def open(self) -> None:
        self.engine.error = EngineUnavailableError()
        for _ in range(MAX_FAILURES):
            await self()
        assert self.breaker.is_open


FALLEN_BACK = ("postgresql", [VECTOR_ENGINE])


async def test_an_engine_that_answers_is_believed() -> None:
    assert await Asked()() == ("engine", [])


async def test_after_failures_in_a_row_it_is_left_alone() -> None:
    asked = Asked()
    await asked.open()

    assert await asked() == FALLEN_BACK
    assert asked.engine.asked == MAX_FAILURES


async def test_one_success_between_failures_keeps_it_closed() -> None:
    asked = Asked()
    for _ in range(MAX_FAILURES):
        asked.engine.error = EngineUnavailableError()
        await asked()
        asked.engine.error = None
        assert await asked() == ("engine", [])

    assert not asked.breaker.is_open


async def test_after_a_pause_one_search_asks_and_then_all() -> None:
    asked = Asked()
    await asked.open()
    asked.engine.error, asked.engine.is_silent = None, True
    asked.clock.now += PAUSE_SECONDS

    probe = asyncio.create_task(asked())
    await asyncio.sleep(0)
    others = [await asked() for _ in range(3)]
    probe.cancel()
    asked.engine.is_silent = False
    asked.clock.now += PAUSE_SECONDS
    mended = [await asked() for _ in range(2)]

    assert others == [FALLEN_BACK] * 3
    assert mended == [("engine", [])] * 2
    assert asked.engine.asked == MAX_FAILURES + 1 + 2


async def test_a_failed_probe_leaves_it_alone_again() -> None:
    asked = Asked()
    await asked.open()
    asked.clock.now += PAUSE_SECONDS

    assert [await asked() for _ in range(3)] == [FALLEN_BACK] * 3
    assert asked.engine.asked == MAX_FAILURES + 1


async def test_a_silent_engine_is_cancelled_and_blamed() -> None:
    asked = Asked(timeout_seconds=FAIR_SECONDS)
    asked.engine.is_silent = True

    assert [await asked() for _ in range(MAX_FAILURES)] == [FALLEN_BACK] * MAX_FAILURES
    assert asked.engine.cancelled == MAX_FAILURES
    assert asked.breaker.is_open


async def test_a_silent_engine_is_not_blamed_for_an_impatient_caller() -> None:
    asked = Asked()
    asked.engine.is_silent = True

    for _ in range(MAX_FAILURES):
        assert await asked(seconds_left=0.02) == FALLEN_BACK

    assert not asked.breaker.is_open


@pytest.mark.parametrize("error", [DependencyUnavailableError("postgresql"), ValueError("ours")])
async def test_other_failures_are_no_reason_to_go_on(error: Exception) -> None:
    asked = Asked()
    asked.engine.error = error

    with pytest.raises(type(error)):
        await asked()
