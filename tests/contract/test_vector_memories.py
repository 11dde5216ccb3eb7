"""What every vector engine must do with memories, beside events."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import pytest
from tests.contract import vector_engines
from tests.contract.vector_points import (
    ask,
    chunk,
    found,
    found_memories,
    memory,
    random_units,
    unit,
)

from annals_storage.domain.search import MemoryScope, SearchScope, Signal
from annals_storage.ports.vectors import VectorIndex

TENANT = UUID(int=1)
OTHER_TENANT = UUID(int=2)
ROOM, AGENT = UUID(int=5), UUID(int=6)


@pytest.fixture(params=vector_engines.ENGINES)
async def index(request, tmp_path):
    async with vector_engines.opened(request.param, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({"conversation_id": ROOM}, {"conversation_ids": (ROOM, UUID(int=7))}),
        ({"agent_id": AGENT}, {"agent_id": AGENT}),
        ({"user_id": "李雷 🐉"}, {"user_id": "李雷 🐉"}),
        ({"session_id": "s-1"}, {"session_id": "s-1"}),
        ({"tags": ("a", "b", "c")}, {"tags": ("c", "a")}),
        ({"tags": ("a'b\"c\\",)}, {"tags": ("a'b\"c\\",)}),
    ],
    ids=str,
)
async def test_each_condition_alone(index: VectorIndex, fields, condition):
    match, other = memory(TENANT, **fields), memory(TENANT, tags=("a", "B"))
    await index.upsert([match, other])

    assert await found_memories(index, MemoryScope(TENANT)) == {match.memory_id, other.memory_id}
    assert await found_memories(index, MemoryScope(TENANT, **condition)) == {match.memory_id}


async def test_events_and_memories_never_answer_for_each_other(index: VectorIndex):
    event, kept = chunk(TENANT, conversation_id=ROOM), memory(TENANT, conversation_id=ROOM)
    await index.upsert([event, kept])

    for fields in ({}, {"all_branches": True}):
        assert await found(index, SearchScope(TENANT, **fields)) == {event.chunk_id}
    assert await found_memories(index, MemoryScope(TENANT)) == {kept.memory_id}
    assert await index.count_points(TENANT) == 2


async def test_scores_are_cosines_in_order_and_the_limit_holds(index: VectorIndex):
    vectors, query = random_units(1, 60), random_units(2, 1)[0]
    points = [memory(TENANT, dense=vector) for vector in vectors]
    await index.upsert([*points, *(chunk(TENANT, dense=query) for _ in range(5))])

    hits = await index.query_memories(MemoryScope(TENANT), query, 10)

    cosines = {p.memory_id: cosine for p, cosine in zip(points, vectors @ query, strict=True)}
    assert [hit.score for hit in hits] == pytest.approx(
        sorted(cosines.values(), reverse=True)[:10], abs=1e-3
    )
    assert [hit.score for hit in hits] == pytest.approx(
        [cosines[hit.memory_id] for hit in hits], abs=1e-3
    )


async def test_upsert_replaces_vector_and_tags(index: VectorIndex):
    first = memory(TENANT, tags=("before",))
    await index.upsert([first])
    await index.upsert([replace(first, tags=(), dense=unit(0.0, 1.0))])

    assert await index.count(MemoryScope(TENANT, tags=("before",))) == 0
    (hit,) = await index.query_memories(MemoryScope(TENANT), unit(0.0, 1.0), 5)
    assert hit.score == pytest.approx(1.0, abs=1e-3)


async def test_a_tenant_sees_and_deletes_its_own_alone(index: VectorIndex):
    ours, theirs = memory(TENANT), memory(OTHER_TENANT)
    await index.upsert([ours, theirs])

    await index.delete_memories(TENANT, [theirs.memory_id])
    assert await found_memories(index, MemoryScope(TENANT)) == {ours.memory_id}
    assert await found_memories(index, MemoryScope(OTHER_TENANT)) == {theirs.memory_id}
    await index.delete_memories(TENANT, [ours.memory_id, uuid4()])
    await index.delete_memories(TENANT, [])
    assert await index.count_points(TENANT) == 0


async def test_a_conversation_goes_with_its_memories(index: VectorIndex):
    kept = memory(TENANT)
    await index.upsert([kept, memory(TENANT, conversation_id=ROOM), chunk(TENANT)])

    await index.delete_conversation(TENANT, ROOM)

    assert await found_memories(index, MemoryScope(TENANT)) == {kept.memory_id}


async def test_pages_hold_chunks_and_memories_in_order(index: VectorIndex):
    events, memories = [chunk(TENANT) for _ in range(9)], [memory(TENANT) for _ in range(9)]
    await index.upsert([*events, *memories, memory(OTHER_TENANT)])
    expected = sorted(
        [(e.chunk_id, e.event_id) for e in events] + [(m.memory_id,) * 2 for m in memories]
    )

    listed: list[tuple[UUID, UUID]] = []
    while page := await index.list_chunks(TENANT, after=listed[-1][0] if listed else None, limit=5):
        listed += page
    assert listed == expected


async def test_memories_do_not_move_the_scores_of_words(index: VectorIndex):
    await index.upsert([chunk(TENANT), chunk(TENANT)])
    query = ask(SearchScope(TENANT))
    alone = [hit.score for hit in (await index.query(query))[Signal.BM25]]
    await index.upsert([memory(TENANT) for _ in range(50)])

    assert [h.score for h in (await index.query(query))[Signal.BM25]] == pytest.approx(alone)


async def test_a_vector_of_another_length_is_refused(index: VectorIndex):
    with pytest.raises(ValueError, match=r"\(3,\)"):
        await index.upsert([memory(TENANT, dense=np.ones(3, np.float32))])
    with pytest.raises(ValueError, match=r"\(3,\)"):
        await index.query_memories(MemoryScope(TENANT), np.ones(3, np.float32), 5)
