"""A real storage service in this process: PostgreSQL, Edge engine, model, gRPC socket."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import structlog
from pydantic import SecretStr
from tests.support.raw import Raw

from annals_client import AsyncAnnalsClient
from annals_common.settings import ServerSettings
from annals_local.postgres import LocalPostgres
from annals_storage import app as storage_app
from annals_storage.app import StorageApp
from annals_storage.app_adapters import Adapters, open_adapters
from annals_storage.settings import StorageSettings

ADMIN_KEY = "test-admin-key"
WORKER_KEY = "test-worker-key"
SECRETS_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()


@dataclass(frozen=True, slots=True)
class Tenant:
    """A fresh tenant, and a typed client and a raw channel that act for it."""

    tenant_id: str
    api_key: str
    client: AsyncAnnalsClient
    raw: Raw


@dataclass(frozen=True, slots=True)
class RunningStorage:
    """Where the service listens and how to act in it."""

    app: StorageApp
    address: str
    adapters: Adapters
    data_dir: Path

    def client(self, api_key: str) -> AsyncAnnalsClient:
        return AsyncAnnalsClient(storage=self.address, api_key=api_key, admin_key=ADMIN_KEY)

    def raw(self, api_key: str) -> Raw:
        return Raw(self.address, api_key)


def storage_settings(
    postgres: LocalPostgres, data_dir: Path, **overrides: object
) -> StorageSettings:
    """Settings for a service of its own over this PostgreSQL.

    It indexes what is in the outbox of this database, into an engine of its own: a test that
    searches through it needs a database of its own.
    """
    values: dict[str, object] = {
        "server": ServerSettings(address="127.0.0.1:0", drain_seconds=5),
        "database_url": SecretStr(postgres.app_url),
        "admin_key_sha256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest(),
        "worker_key_sha256": hashlib.sha256(WORKER_KEY.encode()).hexdigest(),
        "secrets_key": SecretStr(SECRETS_KEY),
        "data_dir": data_dir,
        "embedding_threads": 1,
        "indexer_name": f"test-{uuid4()}",
        "cold_storage_url": f"file://{data_dir}/cold",
    }
    return StorageSettings(**{**values, **overrides})


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """One line of text per entry; the default's drawn tracebacks cost half a second each."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(),
        ],
        cache_logger_on_first_use=False,
    )


@asynccontextmanager
async def running_storage(settings: StorageSettings) -> AsyncIterator[RunningStorage]:
    app = StorageApp(settings)
    opened: list[Adapters] = []

    async def open_and_keep(settings: StorageSettings, stack: AsyncExitStack) -> Adapters:
        opened.append(await open_adapters(settings, stack))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_app, "open_adapters", open_and_keep)
        try:
            await app.start()
        except BaseException:
            await app.stop()
            raise
    try:
        yield RunningStorage(app, f"127.0.0.1:{app.port}", opened[0], settings.data_dir)
    finally:
        await app.stop()


@pytest.fixture(scope="session")
async def storage(
    postgres: LocalPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningStorage]:
    """The storage service of this test session."""
    settings = storage_settings(postgres, tmp_path_factory.mktemp("data"))
    async with running_storage(settings) as it:
        yield it


@pytest.fixture(scope="module")
async def own_storage(
    own_postgres: LocalPostgres, storage: RunningStorage, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningStorage]:
    """A service for one module alone, with nothing of others in its database and its engine."""
    path = tmp_path_factory.mktemp("own")
    (path / "models").symlink_to(storage.data_dir / "models")
    async with running_storage(storage_settings(own_postgres, path)) as it:
        yield it


@pytest.fixture
async def own_tenant(own_storage: RunningStorage) -> AsyncIterator[Tenant]:
    """A tenant of `own_storage`."""
    async with fresh_tenant(own_storage) as it:
        yield it


@asynccontextmanager
async def fresh_tenant(storage: RunningStorage) -> AsyncIterator[Tenant]:
    async with storage.client("") as admin:
        created = await admin.tenants.create(f"tenant {uuid4()}")
    secret = created.api_key_secret
    async with storage.client(secret) as client, storage.raw(secret) as raw:
        yield Tenant(created.tenant.tenant_id, secret, client, raw)


@pytest.fixture
async def tenant(storage: RunningStorage) -> AsyncIterator[Tenant]:
    async with fresh_tenant(storage) as it:
        yield it


@pytest.fixture
async def other_tenant(storage: RunningStorage) -> AsyncIterator[Tenant]:
    async with fresh_tenant(storage) as it:
        yield it


@pytest.fixture
async def admin(storage: RunningStorage) -> AsyncIterator[Raw]:
    """A raw channel with the installation's admin key."""
    async with storage.raw(ADMIN_KEY) as raw:
        yield raw
