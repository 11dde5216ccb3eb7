"""Starts and stops a process of storage.

`app` and the `app_*` modules wire adapters to use cases. Only they know them all.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

from annals_common.health import HealthWatch, probed
from annals_common.metrics import registered, serving_metrics
from annals_common.server import RunningServer, start_server
from annals_storage.app_adapters import Adapters, Shared, cancelled, open_adapters, open_live
from annals_storage.app_mirrors import mirror_keeper
from annals_storage.app_services import service_spec
from annals_storage.cold.warmed import warmed
from annals_storage.commands.grouping import GroupCommit
from annals_storage.commands.growth import GrowthAlert
from annals_storage.commands.job_metrics import measure_jobs
from annals_storage.commands.notifying import NotifyingAppends
from annals_storage.commands.search_log import SearchLog
from annals_storage.indexer.drift import DriftCheck
from annals_storage.indexer.keeper import MirrorKeeper
from annals_storage.indexer.live import LiveMirror
from annals_storage.indexer.stages import staged
from annals_storage.indexer.worker import Indexer, measure
from annals_storage.postgres.appends import PostgresAppends
from annals_storage.postgres.jobs import PostgresJobs
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.pool_metrics import PoolCollector
from annals_storage.postgres.search_log import PostgresSearchLog
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.settings import StorageSettings


class StorageApp:
    """One storage process."""

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._server: RunningServer | None = None
        self.indexing: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port the gRPC server listens on. Raises RuntimeError before start."""
        if self._server is None:
            raise RuntimeError("not started")
        return self._server.port

    async def start(self) -> None:
        """Connect, check, serve. Raises UnsafeRoleError, SchemaOutdatedError."""
        server = self._settings.server
        health = await self._stack.enter_async_context(probed(server.health_address))
        adapters = await open_adapters(self._settings, self._stack)
        self._stack.enter_context(registered(PoolCollector(adapters.database.pool)))
        outbox = PostgresOutbox(adapters.database)
        watching = asyncio.create_task(adapters.generations.watch())
        self._stack.push_async_callback(cancelled, watching)
        if self._settings.run_indexer:
            keeping = asyncio.create_task(_keeper(adapters, self._settings).run())
            self._stack.push_async_callback(cancelled, keeping)
            self.indexing = asyncio.create_task(_indexer(adapters, self._settings).run())
            self._stack.push_async_callback(cancelled, self.indexing)
        else:
            measuring = asyncio.create_task(measure(outbox))
            self._stack.push_async_callback(cancelled, measuring)
        counting = asyncio.create_task(measure_jobs(PostgresJobs(adapters.database)))
        self._stack.push_async_callback(cancelled, counting)
        alert = GrowthAlert(large_events=self._settings.large_conversation_events)
        live = await open_live(self._settings, self._stack)
        appends = NotifyingAppends(PostgresAppends(adapters.database), live.notifications)
        grouping = GroupCommit(appends, alert)
        self._stack.push_async_callback(grouping.drain)
        search_log = SearchLog(PostgresSearchLog(adapters.database))
        search_log.start()
        self._stack.push_async_callback(search_log.drain)
        self._stack.enter_context(serving_metrics(server.metrics_address))
        spec = service_spec(Shared(adapters, outbox, grouping, live, search_log, self._settings))
        self._server = await start_server(spec, server, health)
        self._stack.push_async_callback(self._server.drain)
        # Watches never finish by themselves: they end before the other calls are waited for.
        self._stack.callback(live.wakes.close)

    async def stop(self) -> None:
        """Drain the calls, then let go of everything, last opened first."""
        await self._stack.aclose()


def _indexer(adapters: Adapters, settings: StorageSettings) -> Indexer:
    outbox = staged(PostgresOutbox(adapters.database))
    mirror = LiveMirror(
        outbox=staged(warmed(PostgresOutbox(adapters.database), adapters.cold)),
        generations=adapters.generations,
        sparse=adapters.sparse,
        max_chunks=settings.index_max_chunks_per_event,
    )
    drift = DriftCheck(
        tenants=PostgresTenants(adapters.database),
        outbox=PostgresOutbox(adapters.database),
        vectors=adapters.vectors,
        model=lambda: adapters.embedder.model,
    )
    return Indexer(outbox=outbox, mirror=mirror, owner=_owner(settings), drift=drift)


def _keeper(adapters: Adapters, settings: StorageSettings) -> MirrorKeeper:
    return mirror_keeper(settings, adapters.database, adapters.generations, _owner(settings))


def _owner(settings: StorageSettings) -> str:
    return settings.indexer_name or socket.gethostname()


async def run_indexer(settings: StorageSettings) -> None:
    """Index until cancelled, without serving: for the Qdrant server adapter."""
    async with AsyncExitStack() as stack:
        health = await stack.enter_async_context(probed(settings.server.health_address))
        stack.enter_context(serving_metrics(settings.server.metrics_address))
        adapters = await open_adapters(settings, stack)
        watch = HealthWatch(health, (), adapters.ping)
        await watch.start()
        stack.push_async_callback(watch.stop)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(adapters.generations.watch())
            tasks.create_task(_keeper(adapters, settings).run())
            tasks.create_task(_indexer(adapters, settings).run())
