"""Several indexers side by side, over the adapter of a Qdrant server and one PostgreSQL."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient
from tests.support.indexers import queue
from tests.support.scratch import ScratchDatabase
from tests.support.storage import RunningStorage
from tests.support.waiting import eventually
from tests.support.writing import writing

from annals_storage.app_adapters import cancelled
from annals_storage.commands.mirror_report import MirrorParts
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.indexing import OutboxEntry
from annals_storage.indexer import worker
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.database import Database
from annals_storage.postgres.mirrored import PostgresMirroredRows
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.vectors.server import ServerVectorIndex

INDEXERS = 3
BATCH = 8
EVENTS_PER_APPEND = 20
APPENDS = 6


class CountingMirror(Mirror):
    """The mirror, and whose it mirrored."""

    done: Counter[str]
    owner: str

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        await super().refresh(entries)
        self.done[self.owner] += len(entries)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_share_the_work_and_mirror_everything_once(
    scratch: ScratchDatabase, storage: RunningStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BATCH_EVENTS", BATCH)
    adapters = storage.adapters
    done: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        vectors = ServerVectorIndex(
            AsyncQdrantClient(":memory:"),
            collection=f"several_{uuid4().hex}",
            dimensions=adapters.embedder.dimensions,
        )
        await vectors.open()
        stack.push_async_callback(vectors.close)
        waiting = await stack.enter_async_context(queue(lambda: scratch))
        writer = await (await stack.enter_async_context(writing(scratch, connections=1)))()
        database = Database(scratch.app_url)
        await database.open()
        stack.push_async_callback(database.close)
        for number in range(INDEXERS):
            outbox = PostgresOutbox(database)
            mirror = CountingMirror(
                outbox=outbox, vectors=vectors, embedder=adapters.embedder, sparse=adapters.sparse
            )
            mirror.done, mirror.owner = done, f"indexer {number}"
            indexer = Indexer(
                outbox=outbox, mirror=mirror, owner=mirror.owner, lease=timedelta(seconds=30)
            )
            stack.push_async_callback(cancelled, asyncio.create_task(indexer.run()))

        for _ in range(APPENDS):
            await writer.append(EVENTS_PER_APPEND)

        await eventually(waiting.left, lambda count: not count, timeout_s=60)
        parts = MirrorParts(
            tenants=PostgresTenants(database),
            outbox=PostgresOutbox(database),
            rows=PostgresMirroredRows(database),
            vectors=vectors,
        )
        report = await VerifyMirror(parts)()

    assert len(done) == INDEXERS
    assert sum(done.values()) == len(writer.event_ids) == report.chunks
    assert report.is_clean
