"""Waits for a condition instead of a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

POLL_SECONDS = 0.01
TIMEOUT_S = 15.0

T = TypeVar("T")


async def eventually(
    read: Callable[[], Awaitable[T]], holds: Callable[[T], object], *, timeout_s: float = TIMEOUT_S
) -> T:
    """Return the first value that `holds`. Fails with the last value after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not holds(value := await read()):
        assert time.monotonic() < deadline, f"still {value!r} after {timeout_s} s"
        await asyncio.sleep(POLL_SECONDS)
    return value
