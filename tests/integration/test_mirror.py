"""The mirror is compared with PostgreSQL, and made anew when it was lost."""

from __future__ import annotations

import asyncio
from typing import cast
from uuid import UUID, uuid4

from tests.support.appending import append
from tests.support.indexing import indexed
from tests.support.scratch import ScratchDatabase
from tests.support.storage import RunningStorage, Tenant, fresh_tenant
from tests.support.waiting import eventually

from annals_client import user
from annals_storage.app_adapters import cancelled, mirror_parts
from annals_storage.commands.verifying import VerifyMirror, reindex
from annals_storage.domain.conversations import NewConversation
from annals_storage.indexer.drift import DriftCheck
from annals_storage.indexer.metrics import DRIFT_CHECKED_TENANTS, DRIFT_POINTS
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import LEASE, Indexer
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.database import Database
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.tenants import PostgresTenants


async def test_a_lost_mirror_is_seen_and_made_anew(
    own_storage: RunningStorage, own_tenant: Tenant
) -> None:
    adapters, tenant = own_storage.adapters, own_tenant
    tenants, outbox = PostgresTenants(adapters.database), PostgresOutbox(adapters.database)
    stored = await append(tenant.raw, "", user("The lighthouse keeper left at noon."))
    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    conversation_id = UUID(stored.conversation_id)
    await adapters.vectors.delete_conversation(UUID(tenant.tenant_id), conversation_id)
    broken = await VerifyMirror(mirror_parts(adapters))()

    await reindex(tenants, outbox)

    await eventually(tenant.client.index.status, lambda now: now.pending_count == 0)
    found = await tenant.client.search.events("lighthouse keeper")
    assert broken.missing >= 1
    assert [hit.event.seq for hit in found.hits] == [1]


async def test_an_indexer_ends_whenever_it_is_cancelled(own_storage: RunningStorage) -> None:
    adapters = own_storage.adapters
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


async def test_an_indexer_that_ends_gives_its_leases_back(scratch: ScratchDatabase) -> None:
    tenant_id, conversation_id = uuid4(), uuid4()
    scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [tenant_id])
    database = Database(scratch.app_url)
    await database.open()
    outbox = PostgresOutbox(database)
    await PostgresConversations(database).create(tenant_id, NewConversation(conversation_id, b""))
    await outbox.enqueue_tenant(tenant_id)
    refreshing = asyncio.Event()

    class Stuck:
        async def refresh(self, _entries: object) -> None:
            refreshing.set()
            await asyncio.Event().wait()

    indexer = Indexer(outbox=outbox, mirror=cast("Mirror", Stuck()), owner="ending")
    running = asyncio.create_task(indexer.run())
    await refreshing.wait()

    await cancelled(running)

    [entry] = await outbox.claim("another", limit=10, lease=LEASE)
    assert entry.conversation_id == conversation_id
    await database.close()


class Rounds:
    """A check that goes round the tenants of a service when it is told to."""

    def __init__(self, storage: RunningStorage) -> None:
        database, self.vectors = storage.adapters.database, storage.adapters.vectors
        self.tenants, self.outbox = PostgresTenants(database), PostgresOutbox(database)
        self._check = DriftCheck(
            tenants=self.tenants,
            outbox=self.outbox,
            vectors=self.vectors,
            model=lambda: storage.adapters.embedder.model,
        )

    async def shown(self) -> float:
        """Go round once; return what the gauge shows then."""
        checked = DRIFT_CHECKED_TENANTS.collect()[0].samples[0].value
        for _ in await self.tenants.page(cursor=None, limit=100):
            await self._check.step()
        assert DRIFT_CHECKED_TENANTS.collect()[0].samples[0].value > checked
        await self._check.step()
        return DRIFT_POINTS.collect()[0].samples[0].value

    async def drop_a_point(self, tenant: Tenant) -> None:
        """Store two events; take the first one's point away."""
        stored = await append(tenant.raw, "", user("one"), user("two"))
        await indexed(tenant)
        gone = [UUID(stored.events[0].event_id)]
        await self.vectors.delete_events(UUID(tenant.tenant_id), gone)


async def test_a_dropped_point_shows_as_drift_until_it_is_back(
    own_storage: RunningStorage, own_tenant: Tenant
) -> None:
    rounds = Rounds(own_storage)
    whole = await rounds.shown()
    await rounds.drop_a_point(own_tenant)
    lacking = await rounds.shown()
    await reindex(rounds.tenants, rounds.outbox)
    await indexed(own_tenant)

    assert (whole, lacking) == (0, 1)
    assert await rounds.shown() == 0


async def test_the_drift_of_an_erased_tenant_is_forgotten(
    own_storage: RunningStorage, own_tenant: Tenant
) -> None:
    await append(own_tenant.raw, "", user("stays"))
    await indexed(own_tenant)
    rounds = Rounds(own_storage)
    async with fresh_tenant(own_storage) as leaving:
        await rounds.drop_a_point(leaving)
        lacking = [await rounds.shown(), await rounds.shown()]
        async with own_storage.client("") as admin:
            name = (await admin.tenants.get(leaving.tenant_id)).display_name
            await admin.erasure.tenant(leaving.tenant_id, name)

    assert lacking == [1, 1]
    assert await rounds.shown() == 0
