"""An indexer and a writer that wait for each other: neither is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import psycopg
import pytest
from psycopg.errors import LockNotAvailable
from tests.support.indexers import Queue, queue
from tests.support.scratch import ScratchDatabase
from tests.support.waiting import eventually

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.indexing import OutboxEntry

OWNER = "indexer"
_WAITING = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
_LOCK = "SELECT FROM annals.outbox WHERE key = %s FOR UPDATE"


@pytest.fixture
async def waiting(scratch: ScratchDatabase) -> AsyncIterator[Queue]:
    async with queue(lambda: scratch) as it:
        yield it


class Writer:
    """A transaction that takes keys one after the other."""

    def __init__(self, connection: psycopg.AsyncConnection[object]) -> None:
        self._connection = connection

    async def take(self, entry: OutboxEntry) -> None:
        await self._connection.execute(_LOCK, [entry.key])

    async def can_take(self, entry: OutboxEntry) -> bool:
        try:
            async with self._connection.transaction():
                await self._connection.execute(f"{_LOCK} NOWAIT", [entry.key])
        except LockNotAvailable:
            return False
        return True


async def crossed(
    waiting: Queue, act: Callable[[list[OutboxEntry]], Awaitable[None]], entries: list[OutboxEntry]
) -> bool:
    """Act on two keys while a writer has the second and then wants the first.

    Returns False when the action took them in the other order: then nobody waits for each other.
    """
    url = waiting.scratch.admin_url
    first, second = entries
    async with await psycopg.AsyncConnection.connect(url) as connection:
        writer = Writer(connection)
        await writer.take(second)
        acting = asyncio.ensure_future(act(entries))
        await eventually(
            lambda: asyncio.to_thread(waiting.scratch.admin, _WAITING), lambda rows: rows[0]["n"]
        )
        has_first = not await writer.can_take(first)
        if has_first:
            # PostgreSQL breaks it: who has waited longer looks first, and loses.
            await writer.take(first)
    await acting
    return has_first


@pytest.mark.parametrize("name", ["acknowledge", "fail"])
async def test_the_indexer_begins_again(waiting: Queue, name: str) -> None:
    async def act(entries: list[OutboxEntry]) -> None:
        error = ("broken",) if name == "fail" else ()
        await getattr(waiting.outbox, name)(OWNER, entries, *error)

    async def attempt(*, is_reversed: bool) -> bool:
        waiting.put(waiting.tenant(), 2)
        entries = await waiting.outbox.claim(OWNER, limit=2, lease=timedelta(minutes=5))
        return await crossed(waiting, act, entries[::-1] if is_reversed else entries)

    async def until_crossed() -> None:
        while not await attempt(is_reversed=False) and not await attempt(is_reversed=True):
            pass

    with pytest.raises(DependencyUnavailableError):
        await until_crossed()
