"""Indexers over one outbox, with a mirror that tells what is done to it and when."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast
from uuid import UUID, uuid4

from tests.support.scratch import ScratchDatabase

from annals_storage.app_adapters import cancelled
from annals_storage.domain.indexing import OutboxEntry
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.database import Database
from annals_storage.postgres.outbox import PostgresOutbox


@dataclass(slots=True)
class GatedMirror:
    """Takes entries in and holds them until the gate is open."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    taken: list[list[OutboxEntry]] = field(default_factory=list)
    at_work: Counter[UUID] = field(default_factory=Counter)
    at_once: int = 0
    """The most that were ever at work on one key at the same time."""

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        keys = [entry.key for entry in entries]
        self.taken.append(list(entries))
        self.at_work.update(keys)
        self.at_once = max(self.at_once, *self.at_work.values())
        try:
            await self.gate.wait()
        finally:
            self.at_work.subtract(keys)

    def keys(self) -> list[UUID]:
        """Every key in the order in which it was taken in."""
        return [entry.key for entries in self.taken for entry in entries]


@dataclass(frozen=True, slots=True)
class Queue:
    """The outbox of a database of its own, and whoever works it off."""

    scratch: ScratchDatabase
    outbox: PostgresOutbox

    def tenant(self) -> UUID:
        tenant_id = uuid4()
        self.scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [tenant_id])
        return tenant_id

    def put(self, tenant_id: UUID, count: int, **columns: object) -> list[UUID]:
        """Have so many events wait, oldest first, a millisecond apart."""
        keys = [uuid4() for _ in range(count)]
        given = "".join(f", {name}" for name in columns)
        values = "".join(f", %({name})s" for name in columns)
        self.scratch.admin(
            f"""INSERT INTO annals.outbox
                  (tenant_id, kind, key, conversation_id, enqueued_at, available_at{given})
                SELECT %(tenant_id)s, 'event', key, %(room)s, at, at{values}
                FROM unnest(%(keys)s::uuid[]) WITH ORDINALITY AS k (key, n),
                     LATERAL (SELECT now() - interval '1 hour' + n * interval '1 ms') AS t (at)""",
            {"tenant_id": tenant_id, "room": uuid4(), "keys": keys, **columns},
        )
        return keys

    def rows(self) -> list[dict[str, object]]:
        return self.scratch.admin("SELECT * FROM annals.outbox ORDER BY enqueued_at")

    async def left(self) -> int:
        """How many entries there still are."""
        [row] = await asyncio.to_thread(
            self.scratch.admin, "SELECT count(*) AS n FROM annals.outbox"
        )
        return int(row["n"])

    @asynccontextmanager
    async def worked_off(
        self, mirror: GatedMirror, *, owner: str, lease: timedelta
    ) -> AsyncIterator[None]:
        """An indexer at work until the end of the block."""
        indexer = Indexer(
            outbox=self.outbox, mirror=cast("Mirror", mirror), owner=owner, lease=lease
        )
        running = asyncio.create_task(indexer.run())
        try:
            yield
        finally:
            await cancelled(running)


@asynccontextmanager
async def queue(new_database: Callable[[], ScratchDatabase]) -> AsyncIterator[Queue]:
    scratch = new_database()
    database = Database(scratch.app_url)
    await database.open()
    try:
        yield Queue(scratch, PostgresOutbox(database))
    finally:
        await database.close()
