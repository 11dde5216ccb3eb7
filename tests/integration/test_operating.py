"""Health, metrics and drain of the whole service, over a PostgreSQL that may be stopped."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr
from tests.support.appending import append, listed
from tests.support.health import NOT_SERVING, SERVING, status
from tests.support.raw import failure
from tests.support.scratch import ScratchDatabase
from tests.support.storage import (
    RunningStorage,
    Tenant,
    fresh_tenant,
    running_storage,
    storage_settings,
)
from tests.support.waiting import eventually

from annals_client import user
from annals_common.health import LIVENESS
from annals_common.metrics import serving_metrics
from annals_common.settings import ServerSettings
from annals_local.postgres import LocalPostgres
from annals_storage.app_services import SERVICES


@pytest.mark.parametrize("name", ["", *SERVICES])
async def test_every_service_reports_serving_without_credentials(tenant: Tenant, name: str) -> None:
    assert await status(tenant, name) == SERVING


@asynccontextmanager
async def nobody_may_connect(postgres: LocalPostgres) -> AsyncIterator[None]:
    """PostgreSQL as the service sees it is gone: connections are cut and refused."""
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute("ALTER ROLE annals_app NOLOGIN")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'annals_app'"
        )
        try:
            yield
        finally:
            connection.execute("ALTER ROLE annals_app LOGIN")


async def test_health_and_calls_follow_postgresql(
    own_postgres: LocalPostgres, own_tenant: Tenant
) -> None:
    room = (await append(own_tenant.raw, "", user("before"))).conversation_id

    async with nobody_may_connect(own_postgres):
        await eventually(lambda: status(own_tenant), lambda now: now == NOT_SERVING)
        assert await status(own_tenant, LIVENESS) == SERVING
        refused = await failure(append(own_tenant.raw, room, user("lost")))

    await eventually(lambda: status(own_tenant), lambda now: now == SERVING, timeout_s=30)
    await append(own_tenant.raw, room, user("after"))
    assert (refused.code.name, refused.reason) == ("UNAVAILABLE", "DEPENDENCY_UNAVAILABLE")
    assert dict(refused.metadata) == {"dependency": "postgresql"}
    assert refused.retry_after_ms
    contents = [event.message.content for event in await listed(own_tenant, room)]
    assert contents == ["before", "after"]


async def test_the_indexer_goes_on_after_an_outage(
    own_postgres: LocalPostgres, own_tenant: Tenant
) -> None:
    async with nobody_may_connect(own_postgres):
        await eventually(lambda: status(own_tenant), lambda now: now == NOT_SERVING)
    await eventually(lambda: status(own_tenant), lambda now: now == SERVING, timeout_s=30)

    await append(own_tenant.raw, "", user("words after the outage"))

    await eventually(
        own_tenant.client.index.status,
        lambda now: now.pending_count == 0 and now.point_count == 1,
        timeout_s=30,
    )


async def test_a_process_that_does_not_index_tells_what_waits(
    postgres: LocalPostgres,
    scratch: ScratchDatabase,
    storage: RunningStorage,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("serving")
    (path / "models").symlink_to(storage.data_dir / "models")
    # Settings refuse this of the embedded engine; with a server it is the usual case.
    changes = {"database_url": SecretStr(scratch.app_url), "run_indexer": False}
    settings = storage_settings(postgres, path).model_copy(update=changes)

    async with running_storage(settings) as serving, fresh_tenant(serving) as tenant:
        for _ in range(WAITING):
            await append(tenant.raw, "", user("waits"))
        await eventually(pending, lambda now: now == WAITING)


WAITING = 23


async def pending() -> float | None:
    return REGISTRY.get_sample_value("annals_outbox_pending")


METRICS = (
    r'annals_rpc_calls_total\{code="OK",method="AppendEvents".*\} [1-9]',
    r'annals_rpc_duration_seconds_bucket\{.*method="AppendEvents"',
    r"annals_rpc_in_flight\{",
    r"annals_outbox_pending [0-9]",
    r"annals_outbox_parked [0-9]",
    r"annals_outbox_lag_seconds [0-9]",
    r"annals_postgres_connections [1-9]",
    r"annals_postgres_connections_idle [0-9]",
    r"annals_postgres_waiting [0-9]",
    r"annals_indexer_events_total [1-9]",
    r"annals_indexer_chunks_total [1-9]",
    r"annals_indexer_embed_seconds_count [1-9]",
    r"annals_indexer_failures_total",
)


async def test_metrics_tell_calls_outbox_pool_and_embedding(tenant: Tenant) -> None:
    await append(tenant.raw, "", user("measured words"))
    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    with serving_metrics("127.0.0.1:0") as port:
        text = await asyncio.to_thread(read, port)

    assert [pattern for pattern in METRICS if not re.search(pattern, text)] == []
    assert tenant.tenant_id not in text
    assert "measured words" not in text


def read(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def test_no_metrics_are_served_without_an_address() -> None:
    with serving_metrics(ServerSettings().metrics_address) as port:
        assert port == 0


async def test_stopping_loses_no_acknowledged_write(
    own_postgres: LocalPostgres, storage: RunningStorage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("stopping")
    (path / "models").symlink_to(storage.data_dir / "models")
    acknowledged: list[str] = []
    async with (
        running_storage(storage_settings(own_postgres, path)) as first,
        fresh_tenant(first) as tenant,
    ):
        room = (await append(tenant.raw, "", user("start"))).conversation_id

        async def write(writer: int) -> None:
            number = 0
            while True:
                text = f"{writer} {number}"
                try:
                    await append(tenant.raw, room, user(text))
                except Exception:  # noqa: BLE001 - the server stops: that is the end
                    return
                acknowledged.append(text)
                number += 1

        writers = [asyncio.create_task(write(n)) for n in range(8)]
        await eventually(lambda: asyncio.sleep(0, len(acknowledged)), lambda n: n > 50)
        await first.app.stop()
        await asyncio.gather(*writers)
        key = tenant.api_key

    async with (
        running_storage(storage_settings(own_postgres, path)) as second,
        second.client(key) as client,
    ):
        stored = [event async for event in client.events.list(room, page_size=1000)]
    contents = [event.message.content for event in stored]
    assert set(acknowledged) <= set(contents)
    assert len(contents) == len(set(contents))
    assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
