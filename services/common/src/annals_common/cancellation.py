"""Cancellation that a library below has swallowed."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Whether the running task was told to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def pause(seconds: float) -> None:
    """Sleep in a loop without end, or end it: also when a call before swallowed the cancellation.

    psycopg does, when it comes while an answer is being read; so does `asyncio.wait_for` of Python
    3.11, when it comes together with what was waited for.
    """
    if is_cancelled():
        raise asyncio.CancelledError
    await asyncio.sleep(seconds)
