"""Refuses what cannot be served well: too many calls at once, deadlines already past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from annals_common.errors import DeadlineExceededError, OverloadedError
from annals_common.interceptors.chain import Call, Middleware


def limit_concurrency(max_calls: int, *, lasting: Collection[str] = ()) -> Middleware:
    """Serve at most `max_calls` calls at a time; refuse the rest with OVERLOADED.

    `lasting`: methods whose calls mostly wait, and which limit themselves.
    """
    running = 0

    @asynccontextmanager
    async def limited(call: Call) -> AsyncIterator[None]:
        nonlocal running
        if call.method_name in lasting:
            yield
            return
        if running >= max_calls:
            raise OverloadedError(f"{max_calls} calls are being served")
        running += 1
        try:
            yield
        finally:
            running -= 1

    return limited


@asynccontextmanager
async def require_time(call: Call) -> AsyncIterator[None]:
    """Refuse a call whose deadline has passed on the way here."""
    remaining = call.context.time_remaining()
    if remaining is not None and remaining <= 0:
        raise DeadlineExceededError
    yield
