"""Starts and stops a process of storage.

`app` and the `app_*` modules wire adapters to use cases. Only they know them all.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack

from annals_common.metrics import registered, serving_metrics
from annals_common.server import RunningServer, start_server
from annals_storage.app_adapters import Adapters, Shared, cancelled, open_adapters, open_live
from annals_storage.app_services import service_spec
from annals_storage.cold.warmed import warmed
from annals_storage.commands.grouping import GroupCommit
from annals_storage.commands.growth import GrowthAlert
from annals_storage.commands.notifying import NotifyingAppends
from annals_storage.commands.search_log import SearchLog
from annals_storage.indexer.drift import DriftCheck
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.stages import staged
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.appends import PostgresAppends
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
        adapters = await open_adapters(self._settings, self._stack)
        self._stack.enter_context(registered(PoolCollector(adapters.database.pool)))
        outbox = PostgresOutbox(adapters.database)
        if self._settings.run_indexer:
            self.indexing = asyncio.create_task(_indexer(adapters, self._settings).run())
            self._stack.push_async_callback(cancelled, self.indexing)
        alert = GrowthAlert(large_events=self._settings.large_conversation_events)
        live = await open_live(self._settings, self._stack)
        appends = NotifyingAppends(PostgresAppends(adapters.database), live.notifications)
        grouping = GroupCommit(appends, alert)
        self._stack.push_async_callback(grouping.drain)
        search_log = SearchLog(PostgresSearchLog(adapters.database))
        search_log.start()
        self._stack.push_async_callback(search_log.drain)
        self._stack.enter_context(serving_metrics(self._settings.server.metrics_address))
        spec = service_spec(Shared(adapters, outbox, grouping, live, search_log, self._settings))
        self._server = await start_server(spec, self._settings.server)
        self._stack.push_async_callback(self._server.drain)
        # Watches never finish by themselves: they end before the other calls are waited for.
        self._stack.callback(live.wakes.close)

    async def stop(self) -> None:
        """Drain the calls, then let go of everything, last opened first."""
        await self._stack.aclose()


def _indexer(adapters: Adapters, settings: StorageSettings) -> Indexer:
    outbox = staged(PostgresOutbox(adapters.database))
    mirror = Mirror(
        outbox=staged(warmed(PostgresOutbox(adapters.database), adapters.cold)),
        vectors=staged(adapters.vectors),
        embedder=staged(adapters.embedder),
        sparse=adapters.sparse,
    )
    owner = settings.indexer_name or socket.gethostname()
    drift = DriftCheck(
        tenants=PostgresTenants(adapters.database),
        outbox=PostgresOutbox(adapters.database),
        vectors=adapters.vectors,
    )
    return Indexer(outbox=outbox, mirror=mirror, owner=owner, drift=drift)


async def run_indexer(settings: StorageSettings) -> None:
    """Index until cancelled, without serving: for the Qdrant server adapter."""
    async with AsyncExitStack() as stack:
        adapters = await open_adapters(settings, stack)
        stack.enter_context(serving_metrics(settings.server.metrics_address))
        await _indexer(adapters, settings).run()
