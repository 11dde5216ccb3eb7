"""What every vector engine must show of its points to who verifies it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.contract import vector_engines
from tests.contract.vector_points import NOON, chunk, memory

from annals_storage.domain.events import EventType, Role
from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.domain.search import ChunkPoint, MemoryPoint
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors import payload

TENANT, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture(params=vector_engines.ENGINES)
async def index(request: Any, tmp_path: Any) -> AsyncIterator[VectorIndex]:
    async with vector_engines.opened(request.param, tmp_path) as opened:
        yield opened


def full_chunk(**fields: Any) -> ChunkPoint:
    """A chunk that carries everything a chunk can."""
    everything = {
        "agent_id": uuid4(),
        "user_id": "alice",
        "session_id": "s",
        "role": Role.USER,
        "tool_name": "lamp",
        "branch": 2,
        "seq": 2**40,
        "chunk_index": 3,
        "made_of": "00ff",
    }
    return chunk(TENANT, **everything | fields)


def full_memory(**fields: Any) -> MemoryPoint:
    """A memory that carries everything a memory can."""
    everything = {"tags": ("a", "b"), "agent_id": uuid4(), "user_id": "bob", "made_of": "00ff"}
    return memory(TENANT, **everything | fields)


async def held(index: VectorIndex, point_id: UUID) -> StoredPoint:
    [point] = await index.audit.get([point_id, uuid4()])
    return point


async def test_pages_are_ordered_and_complete_of_one_or_everybody(index: VectorIndex) -> None:
    own = [chunk(TENANT) for _ in range(12)] + [memory(TENANT) for _ in range(5)]
    others = [chunk(OTHER) for _ in range(6)]
    await index.upsert([*own, *others])

    listed: dict[UUID | None, list[UUID]] = {TENANT: [], None: []}
    for tenant_id, found in listed.items():
        after = None
        while page := await (
            index.audit.page_of(tenant_id, after=after, limit=5)
            if tenant_id
            else index.audit.page(after=after, limit=5)
        ):
            assert len(page) <= 5
            after = page[-1].point_id
            found += [point.point_id for point in page]

    assert listed == {TENANT: sorted(ids_of(own)), None: sorted(ids_of([*own, *others]))}
    assert await index.audit.count() == 23


def ids_of(points: list[Any]) -> list[UUID]:
    return [p.memory_id if isinstance(p, MemoryPoint) else p.chunk_id for p in points]


async def test_a_point_says_whose_it_is_and_what_it_is_known_by(index: VectorIndex) -> None:
    first, second = full_chunk(), full_memory()
    await index.upsert([first, second])

    of_event, of_memory = await held(index, first.chunk_id), await held(index, second.memory_id)

    assert of_event.tenant == of_memory.tenant == str(TENANT)
    assert of_event.keys == (first.chunk_id, first.event_id, first.conversation_id)
    assert of_memory.keys == (second.memory_id, second.conversation_id)


@pytest.mark.parametrize("point", [full_chunk(), full_memory(), chunk(TENANT), memory(TENANT)])
async def test_what_was_written_does_not_differ(
    index: VectorIndex, point: ChunkPoint | MemoryPoint
) -> None:
    await index.upsert([point])
    [stored] = await index.audit.page_of(TENANT, after=None, limit=5)
    assert index.audit.drift(stored, point) is None


CHANGES_OF_A_CHUNK = {
    "conversation_id": uuid4(),
    "event_id": uuid4(),
    "seq": 3,
    "chunk_index": 1,
    "event_type": EventType.SYSTEM,
    "event_time": NOON.replace(microsecond=123457),
    "agent_id": None,
    "user_id": "mallory",
    "session_id": None,
    "role": None,
    "tool_name": "hammer",
    "branch": 1,
    "current": False,
}
CHANGES_OF_A_MEMORY = {
    "conversation_id": uuid4(),
    "tags": ("b",),
    "agent_id": None,
    "user_id": None,
    "session_id": "s",
}


@pytest.mark.parametrize(
    ("point", "change"),
    [
        *((full_chunk(), {name: value}) for name, value in CHANGES_OF_A_CHUNK.items()),
        *((full_memory(), {name: value}) for name, value in CHANGES_OF_A_MEMORY.items()),
    ],
)
async def test_every_field_that_differs_is_seen(
    index: VectorIndex, point: ChunkPoint | MemoryPoint, change: dict[str, Any]
) -> None:
    await index.upsert([replace(point, **change)])
    [stored] = await index.audit.page_of(TENANT, after=None, limit=5)
    assert index.audit.drift(stored, point) is Drift.WRONG_PAYLOAD


@pytest.mark.parametrize("point", [full_chunk(), full_memory()])
async def test_other_words_are_seen_and_unknown_ones_are_not_suspected(
    index: VectorIndex, point: ChunkPoint | MemoryPoint
) -> None:
    found = []
    for digest in ("beef", ""):
        await index.upsert([replace(point, made_of=digest)])
        [stored] = await index.audit.page_of(TENANT, after=None, limit=5)
        found.append(index.audit.drift(stored, point))
    assert found == [Drift.STALE, None]


async def test_points_of_earlier_versions_do_not_differ(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = chunk(TENANT, made_of="00ff")
    unknown = {payload.KIND, payload.BRANCH, payload.CURRENT, payload.MADE_OF}
    earlier = {name: value for name, value in payload.encode(point).items() if name not in unknown}
    with monkeypatch.context() as patch:
        patch.setattr(payload, "encode", lambda _: earlier)
        await index.upsert([point])

    stored = await held(index, point.chunk_id)

    assert stored.payload == earlier
    assert index.audit.drift(stored, point) is None
    assert index.audit.drift(stored, replace(point, current=False)) is Drift.WRONG_PAYLOAD
    assert index.audit.drift(stored, replace(point, branch=2)) is Drift.WRONG_PAYLOAD


async def test_only_points_of_the_named_tenant_are_deleted(index: VectorIndex) -> None:
    own, theirs = chunk(TENANT), chunk(OTHER)
    await index.upsert([own, theirs])

    await index.audit.delete(str(TENANT), [])
    await index.audit.delete(str(TENANT), [own.chunk_id, theirs.chunk_id])
    await index.audit.delete(None, [theirs.chunk_id])

    assert [point.point_id for point in await index.audit.page(after=None, limit=5)] == [
        theirs.chunk_id
    ]


async def test_points_without_a_tenant_can_be_deleted(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, stray = chunk(TENANT), chunk(TENANT)
    await index.upsert([own])
    with monkeypatch.context() as patch:
        patch.setattr(payload, "encode", lambda _: {payload.EVENT_ID: "no id", payload.SEQ: "x"})
        await index.upsert([stray])
    assert (await held(index, stray.chunk_id)).tenant is None
    assert (await held(index, stray.chunk_id)).keys == (stray.chunk_id,)

    await index.audit.delete(None, [own.chunk_id, stray.chunk_id])

    assert await index.audit.get([]) == []
    assert [point.point_id for point in await index.audit.page(after=None, limit=5)] == [
        own.chunk_id
    ]
