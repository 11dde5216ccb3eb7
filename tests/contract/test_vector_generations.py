"""Two generations beside each other: neither sees, takes or loses what is the other's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient
from tests.contract import vector_engines
from tests.contract.vector_points import DIMENSIONS, ask, chunk, found, terms, unit

from annals_storage.commands.vectors_together import ServingVectors, WrittenTogether
from annals_storage.domain.search import SearchScope, Signal
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors.server import ServerVectorIndex

TENANT = UUID(int=1)
WIDER = 2 * DIMENSIONS
Pair = tuple[VectorIndex, VectorIndex]


@pytest.fixture(params=vector_engines.ENGINES)
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    lengths = (DIMENSIONS, WIDER)
    async with vector_engines.opened_beside(request.param, tmp_path, lengths) as opened:
        yield opened


@pytest.fixture(params=vector_engines.ENGINES)
async def alike(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    lengths = (DIMENSIONS, DIMENSIONS)
    async with vector_engines.opened_beside(request.param, tmp_path, lengths) as opened:
        yield opened


def wider(*values: float) -> np.ndarray:
    return np.concatenate([unit(*values), np.zeros(WIDER - DIMENSIONS, np.float32)])


async def test_each_has_its_own_points_vectors_and_filters(pair: Pair) -> None:
    first, second = pair
    point = chunk(TENANT, user_id="alice")
    await first.upsert([point])
    await second.upsert([chunk(TENANT, event_id=point.event_id, dense=wider(0.0, 1.0))])

    mine = await second.query(
        ask(SearchScope(TENANT), dense=wider(0.0, 1.0), bm25=terms(7), limit=5)
    )

    assert {signal: len(hits) for signal, hits in mine.items()} == {
        Signal.DENSE: 1,
        Signal.BM25: 1,
    }
    assert mine[Signal.DENSE][0].score == pytest.approx(1.0, abs=1e-3)
    assert await found(first, SearchScope(TENANT, user_id="alice")) == {point.chunk_id}
    assert await second.count(SearchScope(TENANT, user_id="alice")) == 0


async def test_a_delete_by_event_is_of_one_alone(pair: Pair) -> None:
    first, second = pair
    event_id = uuid4()
    await first.upsert([chunk(TENANT, event_id=event_id)])
    await second.upsert([chunk(TENANT, event_id=event_id, dense=wider(1.0))])

    await first.delete_events(TENANT, [event_id])

    assert (await first.count_points(TENANT), await second.count_points(TENANT)) == (0, 1)


async def test_written_together_they_hold_the_same(alike: Pair) -> None:
    together = WrittenTogether(lambda: alike)
    kept, gone = chunk(TENANT), chunk(TENANT)

    await together.upsert([kept, gone])
    await together.delete_chunks(TENANT, [gone.chunk_id])

    for each in alike:
        assert await found(each, SearchScope(TENANT)) == {kept.chunk_id}


async def test_one_serves_and_both_forget(alike: Pair) -> None:
    first, second = alike
    point, other = chunk(TENANT), chunk(TENANT)
    await WrittenTogether(lambda: alike).upsert([point])
    serving = ServingVectors(lambda: second, lambda: alike)

    await serving.upsert([other])
    await serving.delete_events(TENANT, [point.event_id])

    assert await found(serving, SearchScope(TENANT)) == {other.chunk_id}
    assert await first.count_points(TENANT) == 0


async def test_the_alias_moves_at_once_and_the_former_collection_goes(pair: Pair) -> None:
    first, second = pair
    if not isinstance(first, ServerVectorIndex) or not isinstance(second, ServerVectorIndex):
        # The embedded engine has no aliases: announcing is a server's.
        assert not hasattr(first, "announce")
        return
    client: AsyncQdrantClient = second._client
    alias = second._alias
    await second.upsert([chunk(TENANT, dense=wider(1.0))])
    before = await _target(client, alias)

    await second.announce()
    await second.announce()
    moved = await _target(client, alias)
    await first.drop()
    await first.drop()

    assert (before, moved) == (f"{alias}_v1", f"{alias}_v2")
    assert (await client.count(alias, exact=True)).count == 1
    assert await second.count_points(TENANT) == 1


async def _target(client: AsyncQdrantClient, alias: str) -> str | None:
    aliases = (await client.get_aliases()).aliases
    return {each.alias_name: each.collection_name for each in aliases}.get(alias)
