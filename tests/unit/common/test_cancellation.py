"""A loop without end ends when it is told to, whatever a call in it makes of that."""

from __future__ import annotations

import asyncio

import pytest

from annals_common.cancellation import pause


async def test_a_loop_ends_although_a_call_swallowed_the_cancellation() -> None:
    began, swallowed = asyncio.Event(), asyncio.Event()

    async def swallows() -> None:
        assert not swallowed.is_set(), "the loop went on"
        try:
            began.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.set()

    async def loop() -> None:
        while True:
            await swallows()
            await pause(0.0)

    looping = asyncio.create_task(loop())
    await began.wait()
    looping.cancel()

    with pytest.raises(asyncio.CancelledError):
        await looping
    assert swallowed.is_set()
