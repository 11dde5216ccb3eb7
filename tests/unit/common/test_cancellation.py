"""A loop without end ends when it is told to, whatever a call in it makes of that."""

from __future__ import annotations

import asyncio

from annals_common.cancellation import pause


async def test_a_loop_ends_although_a_call_swallowed_the_cancellation() -> None:
    began = asyncio.Event()

    async def swallows() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    async def loop() -> None:
        while True:
            await swallows()
            await pause(0.0)

    looping = asyncio.create_task(loop())
    await began.wait()
    looping.cancel()
    await asyncio.wait({looping}, timeout=5)
    assert looping.cancelled()
