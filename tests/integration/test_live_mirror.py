"""What is mirrored while a generation comes: every one of them gets it, or the outbox keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.scratch import ScratchDatabase, as_tenant
from tests.support.second_model import SECOND_DIMENSIONS, SECOND_MODEL, write_second_model
from tests.support.storage import RunningStorage, storage_settings

from annals_storage.app_adapters import Adapters, open_adapters
from annals_storage.domain.generations import EmbeddingModel
from annals_storage.domain.indexing import ChunkRow, OutboxEntry
from annals_storage.embedding.minilm import ensure_minilm
from annals_storage.indexer.live import LiveMirror
from annals_storage.postgres.generations import PostgresGenerations, PostgresSources
from annals_storage.postgres.outbox import PostgresOutbox

LEASE = timedelta(seconds=30)
_SAID = """
WITH tenant AS (INSERT INTO annals.tenants (tenant_id, display_name) VALUES (%(tenant)s, 't')),
room AS (
  INSERT INTO annals.conversations (tenant_id, conversation_id) VALUES (%(tenant)s, %(room)s)
),
event AS (
  INSERT INTO annals.events (tenant_id, conversation_id, seq, event_id, type, role, content,
                             token_count, event_time, created_at)
  VALUES (%(tenant)s, %(room)s, 1, %(event)s, 'message', 'user', 'a heron on the roof', 5, now(),
          now())
),
memory AS (
  INSERT INTO annals.memories (tenant_id, memory_id, conversation_id, content, payload_hash)
  VALUES (%(tenant)s, %(memory)s, %(room)s, 'herons like roofs', ''::bytea)
)
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
VALUES (%(tenant)s, 'event', %(event)s, %(room)s), (%(tenant)s, 'memory', %(memory)s, %(room)s)
RETURNING 1
"""
_MODELS = """
SELECT (SELECT array_agg(embedding_model ORDER BY embedding_model) FROM annals.chunks) AS chunks,
       embedding_model AS memory, other_embedding_model AS other
FROM annals.memories
"""


@dataclass(frozen=True, slots=True)
class Alone:
    """A tenant with an event and a memory that wait, and nobody who indexes."""

    database: ScratchDatabase
    adapters: Adapters
    tenant_id: UUID
    second_model: EmbeddingModel

    @property
    def store(self) -> PostgresGenerations:
        return PostgresGenerations(self.adapters.database)

    @property
    def outbox(self) -> PostgresOutbox:
        return PostgresOutbox(self.adapters.database)

    def mirror(self, outbox: PostgresOutbox) -> LiveMirror:
        return LiveMirror(
            outbox=outbox, generations=self.adapters.generations, sparse=self.adapters.sparse
        )

    async def claimed(self) -> list[OutboxEntry]:
        return await self.outbox.claim("slow", limit=10, lease=LEASE)

    async def counts(self) -> list[int]:
        """Points of each generation."""
        live = self.adapters.generations.live
        return [await each.vectors.count_points(self.tenant_id) for each in live]

    def kept(self) -> dict[str, Any]:
        """By which models PostgreSQL has embeddings."""
        [row] = as_tenant(self.database.app_url, str(self.tenant_id), _MODELS)
        return row


@pytest.fixture
async def alone(
    scratch: ScratchDatabase, storage: RunningStorage, tmp_path: Path
) -> AsyncIterator[Alone]:
    (tmp_path / "models").symlink_to(storage.data_dir / "models")
    second = write_second_model(ensure_minilm(storage.data_dir), tmp_path / "second")
    model = EmbeddingModel(SECOND_MODEL, str(second), SECOND_DIMENSIONS)
    tenant_id = uuid4()
    names = {name: uuid4() for name in ("room", "event", "memory")}
    as_tenant(scratch.app_url, str(tenant_id), _SAID, {"tenant": tenant_id, **names})
    async with AsyncExitStack() as stack:
        adapters = await open_adapters(storage_settings(scratch, tmp_path), stack)  # type: ignore[arg-type]
        yield Alone(scratch, adapters, tenant_id, model)


class Meanwhile(PostgresOutbox):
    """Begins a build right after the chunks of a batch were stored."""

    def __init__(self, alone: Alone, model: EmbeddingModel) -> None:
        super().__init__(alone.adapters.database)
        self._alone, self._model = alone, model

    async def save_chunks(
        self,
        tenant_id: UUID,
        event_ids: Sequence[UUID],
        chunks: Sequence[ChunkRow],
        *,
        other_models: Sequence[str] = (),
    ) -> None:
        await super().save_chunks(tenant_id, event_ids, chunks, other_models=other_models)
        await self._alone.store.request(self._model)


async def test_a_generation_that_comes_meanwhile_gets_it_too(alone: Alone) -> None:
    same_model = alone.adapters.generations.serving.generation.model
    entries = await alone.claimed()

    await alone.mirror(Meanwhile(alone, same_model)).refresh(entries)

    assert await alone.counts() == [2, 2]


async def test_two_models_keep_what_is_theirs(alone: Alone) -> None:
    first = alone.adapters.generations.serving.generation.model.name
    entries = await alone.claimed()

    await alone.mirror(Meanwhile(alone, alone.second_model)).refresh(entries)
    await alone.mirror(alone.outbox).refresh(entries)

    assert await alone.counts() == [2, 2]
    assert alone.kept() == {
        "chunks": sorted([first, SECOND_MODEL]),
        "memory": first,
        "other": SECOND_MODEL,
    }


async def test_once_the_former_is_gone_one_model_is_left(alone: Alone) -> None:
    entries = await alone.claimed()
    await alone.mirror(Meanwhile(alone, alone.second_model)).refresh(entries)
    former, building = await alone.store.all()
    sources = PostgresSources(alone.adapters.database)

    await sources.forget_chunks(alone.tenant_id, former.model.name, after=None, limit=10)
    await sources.settle_memories(alone.tenant_id, building.model.name)

    assert alone.kept() == {"chunks": [SECOND_MODEL], "memory": SECOND_MODEL, "other": None}


async def test_the_walk_takes_the_acknowledgement_from_who_is_at_it(alone: Alone) -> None:
    entries = await alone.claimed()
    await alone.mirror(alone.outbox).refresh(entries)
    await alone.store.request(alone.adapters.generations.serving.generation.model)

    sources = PostgresSources(alone.adapters.database)
    taken = await sources.enqueue_page(alone.tenant_id, after=None, limit=10)
    await alone.outbox.acknowledge("slow", entries)

    assert set(taken) == {entry.key for entry in entries}
    assert await sources.any_waiting(alone.tenant_id, taken)
    await alone.adapters.generations.refresh()
    again = await alone.claimed()
    await alone.mirror(alone.outbox).refresh(again)
    assert await alone.counts() == [2, 2]


async def test_one_that_goes_meanwhile_is_not_waited_for(alone: Alone) -> None:
    entries = await alone.claimed()
    await alone.store.request(alone.adapters.generations.serving.generation.model)
    await alone.adapters.generations.refresh()
    going = alone.adapters.generations.live[-1]
    await alone.store.cancel()
    await going.vectors.close()

    await alone.mirror(alone.outbox).refresh(entries)

    assert await alone.counts() == [2]
