"""Opens what reaches outside the process, and closes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from annals_storage.app_lifecycle import open_cold_storage
from annals_storage.app_mirrors import open_generations, open_patiently, parts_of
from annals_storage.cold.warmed import warmed
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.generations import Generations
from annals_storage.commands.grouping import GroupCommit
from annals_storage.commands.mirror_report import MirrorParts
from annals_storage.commands.search_log import SearchLog
from annals_storage.commands.vectors_together import ServingVectors
from annals_storage.commands.wakes import Wakes
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.ports.generations import LoadedEmbedder
from annals_storage.postgres.database import Database
from annals_storage.postgres.guard import check_database
from annals_storage.postgres.notifications import PostgresNotifications
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.settings import StorageSettings

StoreT = TypeVar("StoreT")


@dataclass(frozen=True, slots=True)
class Adapters:
    """Everything that reaches outside the process."""

    database: Database
    generations: Generations
    sparse: Bm25Encoder
    cold: ColdStorage

    @property
    def vectors(self) -> ServingVectors:
        """The engine, as whatever generation serves."""
        generations = self.generations
        return ServingVectors(
            lambda: generations.serving.vectors,
            lambda: [each.vectors for each in generations.live],
        )

    @property
    def embedder(self) -> LoadedEmbedder:
        """The model of the generation that serves now."""
        return self.generations.serving.embedder

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
    await open_patiently(database, attempts)
    await check_database(database)
    generations = await open_generations(settings, database, stack, attempts)
    sparse = Bm25Encoder(language=settings.bm25_language)
    return Adapters(database, generations, sparse, open_cold_storage(database, settings))


@asynccontextmanager
async def admin_database(
    settings: StorageSettings, *, max_connections: int = 1
) -> AsyncIterator[Database]:
    """Open PostgreSQL alone, for an operator's command. Raises DependencyUnavailableError."""
    database = Database(settings.database_url.get_secret_value(), max_connections=max_connections)
    await database.open()
    try:
        await check_database(database)
        yield database
    finally:
        await database.close()


def mirror_parts(adapters: Adapters) -> MirrorParts:
    """Return what a verification of the mirror compares."""
    return parts_of(adapters.database, adapters.generations.serving)


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
