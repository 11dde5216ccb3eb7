"""A process that is told to stop stops looking at its dependencies."""

from __future__ import annotations

import asyncio

import pytest

from annals_common import health
from annals_common.health import Health, HealthWatch


async def test_a_watch_stops_although_a_check_swallowed_the_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "INTERVAL_SECONDS", 0.0)
    looked_again = asyncio.Event()
    checks = 0

    async def swallows_once() -> None:
        nonlocal checks
        checks += 1
        if checks != 2:
            return
        try:
            looked_again.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    watch = HealthWatch(await Health.starting(), (), swallows_once)
    await watch.start()
    await looked_again.wait()
    stopping = asyncio.create_task(watch.stop())
    await asyncio.wait({stopping}, timeout=5)
    assert stopping.done()
    assert checks == 2
