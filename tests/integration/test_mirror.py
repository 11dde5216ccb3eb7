"""The mirror is compared with PostgreSQL, and made anew when it was lost."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

from tests.support.appending import append
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import user
from annals_storage.commands.verifying import reindex, verify_mirror
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.tenants import PostgresTenants


async def test_a_lost_mirror_is_seen_and_made_anew(storage: RunningStorage, tenant: Tenant) -> None:
    adapters = storage.adapters
    tenants, outbox = PostgresTenants(adapters.database), PostgresOutbox(adapters.database)
    stored = await append(tenant.raw, "", user("The lighthouse keeper left at noon."))
    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    conversation_id = UUID(stored.conversation_id)
    await adapters.vectors.delete_conversation(UUID(tenant.tenant_id), conversation_id)
    broken = await verify_mirror(tenants, outbox, adapters.vectors)

    await reindex(tenants, outbox)

    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    found = await tenant.client.search.events("lighthouse keeper")
    assert broken.missing >= 1
    assert [hit.event.seq for hit in found.hits] == [1]


async def test_an_indexer_ends_whenever_it_is_cancelled(storage: RunningStorage) -> None:
    adapters = storage.adapters
    outbox = PostgresOutbox(adapters.database)
    mirror = Mirror(
        outbox=outbox, vectors=adapters.vectors, embedder=adapters.embedder, sparse=adapters.sparse
    )
    for turns in range(60):
        indexer = Indexer(outbox=outbox, mirror=mirror, owner=f"test-{uuid4()}")
        running = asyncio.create_task(indexer.run())
        for _ in range(turns):
            await asyncio.sleep(0)

        running.cancel()

        done, _ = await asyncio.wait({running}, timeout=10)
        assert done, f"still running after a cancellation at turn {turns}"
        assert running.cancelled()
