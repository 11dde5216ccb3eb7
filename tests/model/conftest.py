"""A tenant for a machine that hypothesis drives from outside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.storage import RunningStorage, Tenant, fresh_tenant


@pytest.fixture(scope="module")
async def modelled(
    storage: RunningStorage,
) -> AsyncIterator[tuple[asyncio.AbstractEventLoop, Tenant]]:
    async with fresh_tenant(storage) as tenant:
        yield asyncio.get_running_loop(), tenant
