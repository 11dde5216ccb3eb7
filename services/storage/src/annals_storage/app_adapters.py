"""Opens what reaches outside the process, and closes it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TypeVar

import structlog

from annals_common.errors import DependencyUnavailableError
from annals_storage.app_lifecycle import open_cold_storage
from annals_storage.cold.warmed import warmed
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.grouping import GroupCommit
from annals_storage.commands.mirror_report import MirrorParts
from annals_storage.commands.search_log import SearchLog
from annals_storage.commands.wakes import Wakes
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.loading import load_embedder
from annals_storage.ports.vectors import VectorIndex
from annals_storage.postgres.database import Database
from annals_storage.postgres.guard import check_database
from annals_storage.postgres.mirrored import PostgresMirroredRows
from annals_storage.postgres.notifications import PostgresNotifications
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.settings import StorageSettings
from annals_storage.vectors.edge import EdgeVectorIndex

RETRY_SECONDS = 1.0
VECTORS_FOLDER = "vectors"
"""Where the embedded engine lives in the data directory."""
StoreT = TypeVar("StoreT")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Adapters:
    """Everything that reaches outside the process."""

    database: Database
    vectors: VectorIndex
    embedder: FastembedEmbedder
    sparse: Bm25Encoder
    cold: ColdStorage

    async def ping(self) -> None:
        """Raise DependencyUnavailableError unless PostgreSQL and the engine answer."""
        await self.database.ping()
        await self.vectors.ping()


@dataclass(frozen=True, slots=True)
class Live:
    """What connects commits with watches."""

    notifications: PostgresNotifications
    wakes: Wakes


@dataclass(frozen=True, slots=True)
class Shared:
    """What the services of one process share."""

    adapters: Adapters
    outbox: PostgresOutbox
    grouping: GroupCommit
    live: Live
    search_log: SearchLog
    settings: StorageSettings

    @property
    def database(self) -> Database:
        """The database of the adapters."""
        return self.adapters.database

    def warm(self, store: StoreT) -> StoreT:
        """Return the store with the words of cold events filled in."""
        return warmed(store, self.adapters.cold)


async def open_live(settings: StorageSettings, stack: AsyncExitStack) -> Live:
    """Listen for notifications until the stack closes."""
    wakes = Wakes()
    notifications = PostgresNotifications(settings.database_url.get_secret_value(), wakes.wake)
    stack.push_async_callback(notifications.close)
    listening = asyncio.create_task(notifications.listen())
    stack.push_async_callback(cancelled, listening)
    return Live(notifications, wakes)


async def open_adapters(
    settings: StorageSettings, stack: AsyncExitStack, *, attempts: int | None = None
) -> Adapters:
    """Open PostgreSQL, the model and the engine; close them with the stack.

    `attempts`: how often what does not answer is tried; None: until it does. Raises
    DependencyUnavailableError after the last.
    """
    database = Database(
        settings.database_url.get_secret_value(),
        max_connections=settings.database_max_connections,
        statement_timeout_ms=settings.statement_timeout_ms,
    )
    stack.push_async_callback(database.close)
    embedder, _ = await asyncio.gather(open_embedder(settings), _open_patiently(database, attempts))
    stack.callback(embedder.close)
    await check_database(database)
    vectors = _vectors(settings, embedder.dimensions)
    stack.push_async_callback(vectors.close)
    await _open_patiently(vectors, attempts)
    sparse = Bm25Encoder(language=settings.bm25_language)
    return Adapters(database, vectors, embedder, sparse, open_cold_storage(database, settings))


def mirror_parts(adapters: Adapters) -> MirrorParts:
    """Return what a verification of the mirror compares."""
    database = adapters.database
    return MirrorParts(
        tenants=PostgresTenants(database),
        outbox=PostgresOutbox(database),
        rows=PostgresMirroredRows(database),
        vectors=adapters.vectors,
    )


async def open_embedder(settings: StorageSettings) -> FastembedEmbedder:
    """Load the model of the settings."""
    return await load_embedder(
        settings.embedding_model,
        data_dir=settings.data_dir,
        threads=settings.embedding_threads,
        model_dir=settings.embedding_model_dir,
    )


async def _open_patiently(dependency: Database | VectorIndex, attempts: int | None) -> None:
    """Wait for a dependency that is not up yet: the order of start does not matter."""
    failures = 0
    while True:
        try:
            return await dependency.open()
        except DependencyUnavailableError as error:
            failures += 1
            if failures == attempts:
                raise
            log.warning("waiting", cause=error.message)
            await asyncio.sleep(RETRY_SECONDS)


def _vectors(settings: StorageSettings, dimensions: int) -> VectorIndex:
    if settings.vector_engine == "edge":
        return EdgeVectorIndex(settings.data_dir / VECTORS_FOLDER, dimensions=dimensions)
    # The client takes half a second to import, which the embedded engine need not wait for.
    from annals_storage.vectors.server import ServerVectorIndex, connect  # noqa: PLC0415

    api_key = settings.qdrant_api_key.get_secret_value() or None
    client = connect(settings.qdrant_url, api_key=api_key)
    return ServerVectorIndex(client, collection=settings.qdrant_collection, dimensions=dimensions)


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
