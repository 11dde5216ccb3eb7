"""A tenant for synchronous tests: hypothesis runs each example to its end on the session's loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.storage import RunningStorage, Tenant, fresh_tenant


@pytest.fixture(scope="module")
async def fuzzed(
    storage: RunningStorage,
) -> AsyncIterator[tuple[asyncio.AbstractEventLoop, Tenant]]:
    async with fresh_tenant(storage) as tenant:
        yield asyncio.get_running_loop(), tenant
