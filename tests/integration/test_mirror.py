"""The mirror is compared with PostgreSQL, and made anew when it was lost."""

from __future__ import annotations

from uuid import UUID

from tests.support.appending import append
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import user
from annals_storage.commands.verifying import reindex, verify_mirror
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
