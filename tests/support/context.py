"""A real context service in this process, in front of the session's storage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from pydantic import SecretStr
from tests.support.storage import ADMIN_KEY, SECRETS_KEY, RunningStorage, Tenant

from annals_client import AsyncAnnalsClient
from annals_common.settings import ServerSettings
from annals_context.app import ContextApp
from annals_context.settings import ContextSettings

VIEW_KEY = SecretStr(SECRETS_KEY)


@dataclass(frozen=True, slots=True)
class RunningContext:
    """Where the service listens."""

    address: str


@asynccontextmanager
async def running_context(
    storage_address: str, view_key: SecretStr = VIEW_KEY, **overrides: object
) -> AsyncIterator[RunningContext]:
    app = ContextApp(
        ContextSettings(
            server=ServerSettings(address="127.0.0.1:0", drain_seconds=5),
            storage_address=storage_address,
            view_key=view_key,
            **overrides,
        )
    )
    try:
        await app.start()
        yield RunningContext(f"127.0.0.1:{app.port}")
    finally:
        await app.stop()


@pytest.fixture(scope="session")
async def context(storage: RunningStorage) -> AsyncIterator[RunningContext]:
    """The context service of this test session."""
    async with running_context(storage.address) as it:
        yield it


@pytest.fixture
async def annals(
    storage: RunningStorage, context: RunningContext, tenant: Tenant
) -> AsyncIterator[AsyncAnnalsClient]:
    """A client of both services, as a fresh tenant."""
    async with AsyncAnnalsClient(
        storage.address, context.address, api_key=tenant.api_key, admin_key=ADMIN_KEY
    ) as client:
        yield client
