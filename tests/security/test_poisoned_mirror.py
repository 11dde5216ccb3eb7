"""The mirror is not trusted: what it holds wrongly never reaches a caller."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.appending import append, empty_conversation, ids
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import user
from annals_storage.domain.events import EventType, Role
from annals_storage.domain.search import ChunkPoint, SearchScope, Signal, VectorQuery
from annals_storage.vectors import edge

WORDS = "the lighthouse keeper counts heron feathers"


async def secret_event(tenant: Tenant) -> tuple[str, str]:
    """An indexed event of theirs: its conversation and id."""
    stored = await append(tenant.raw, "", user(WORDS))
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
    return stored.conversation_id, ids(stored)[0]


async def point(storage: RunningStorage, **fields: Any) -> ChunkPoint:
    """A point that would match WORDS perfectly."""
    vector = (await storage.adapters.embedder.embed([WORDS]))[0]
    values: dict[str, Any] = {
        "chunk_id": uuid4(),
        "seq": 1,
        "chunk_index": 0,
        "event_type": EventType.MESSAGE,
        "event_time": datetime.now(UTC),
        "role": Role.USER,
        "dense": vector,
        "bm25": storage.adapters.sparse.encode_document(WORDS),
    }
    return ChunkPoint(**values, **fields)


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
@pytest.mark.parametrize("room", ["theirs", "mine"])
async def test_a_foreign_event_under_my_tenant_is_not_returned(
    storage: RunningStorage, tenant: Tenant, other_tenant: Tenant, mode: str, room: str
) -> None:
    their_room, their_event = await secret_event(other_tenant)
    mine = await empty_conversation(tenant)
    poison = await point(
        storage,
        tenant_id=UUID(tenant.tenant_id),
        conversation_id=UUID(their_room if room == "theirs" else mine),
        event_id=UUID(their_event),
    )
    await storage.adapters.vectors.upsert([poison])

    found = await tenant.client.search.events(WORDS, mode=mode)

    assert list(found.hits) == []


async def test_an_event_that_never_existed_is_not_returned(
    storage: RunningStorage, tenant: Tenant
) -> None:
    ghost = await point(
        storage, tenant_id=UUID(tenant.tenant_id), conversation_id=uuid4(), event_id=uuid4()
    )
    await storage.adapters.vectors.upsert([ghost])

    assert list((await tenant.client.search.events(WORDS)).hits) == []


@pytest.mark.parametrize("owner", ["user_id", "session_id"])
async def test_an_event_the_mirror_ascribes_to_another_user_is_not_returned(
    storage: RunningStorage, tenant: Tenant, owner: str
) -> None:
    made = await tenant.client.conversations.create(**{owner: "alice"})
    stored = await append(tenant.raw, made.conversation_id, user(WORDS))
    await eventually(tenant.client.index.status, lambda status: status.pending_count == 0)
    stale = await point(
        storage,
        tenant_id=UUID(tenant.tenant_id),
        conversation_id=UUID(made.conversation_id),
        event_id=UUID(ids(stored)[0]),
        **{owner: "bob"},
    )
    await storage.adapters.vectors.upsert([stale])

    found = await tenant.client.search.events(WORDS, **{owner: "bob"})

    assert list(found.hits) == []


class TestTeeth:
    """The engine's own filter by tenant, and what happens without it."""

    async def found_by_engine(
        self, storage: RunningStorage, tenant: Tenant, other: Tenant
    ) -> set[UUID]:
        _, their_event = await secret_event(other)
        vector = (await storage.adapters.embedder.embed([WORDS]))[0]
        query = VectorQuery(SearchScope(UUID(tenant.tenant_id)), 100, dense=vector)
        found = await storage.adapters.vectors.query(query)
        return {chunk.event_id for chunk in found[Signal.DENSE]} & {UUID(their_event)}

    async def test_with_the_filter_the_engine_finds_nothing_of_others(
        self, storage: RunningStorage, tenant: Tenant, other_tenant: Tenant
    ) -> None:
        assert await self.found_by_engine(storage, tenant, other_tenant) == set()

    async def test_without_it_the_probe_finds_the_leak_and_postgres_stops_it(
        self,
        storage: RunningStorage,
        tenant: Tenant,
        other_tenant: Tenant,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        async def unfiltered() -> set[UUID]:
            return await self.found_by_engine(storage, tenant, other_tenant)

        matches = edge.payload.matches
        monkeypatch.setattr(
            edge.payload,
            "matches",
            lambda scope: (
                pair for pair in matches(replace(scope)) if pair[0] != edge.payload.TENANT_ID
            ),
        )

        assert await unfiltered() != set()
        assert list((await tenant.client.search.events(WORDS)).hits) == []
