"""A mirror, what is wrong with it, and a thousand ways to make it so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from tests.support.appending import append
from tests.support.memories import remembered
from tests.support.storage import Tenant

from annals_client import user
from annals_storage.commands.mirror_report import MirrorParts, MirrorReport
from annals_storage.domain.events import EventType, Role
from annals_storage.domain.mirror import Drift, MirroredRow
from annals_storage.domain.search import ChunkPoint, MemoryPoint, SparseVector

EVENTS = 2_000
MEMORIES = 20
TEXTS = 40
MOVED = 100
SEED = 20_260
Point = ChunkPoint | MemoryPoint


def kinds(report: MirrorReport) -> dict[str, int]:
    """What differs, without what does not."""
    figures = report.as_dict()
    return {kind.value: figures[kind] for kind in Drift if figures[kind]}


async def rows_of(parts: MirrorParts, tenant: Tenant) -> list[MirroredRow]:
    tenant_id = UUID(tenant.tenant_id)
    point_ids = await parts.rows.page(tenant_id, after=None, limit=10_000)
    rows = await parts.rows.get(tenant_id, point_ids)
    return [rows[point_id] for point_id in point_ids]


def id_of(point: Point) -> UUID:
    return point.memory_id if isinstance(point, MemoryPoint) else point.chunk_id


def renamed(point: Point) -> Point:
    if isinstance(point, MemoryPoint):
        return replace(point, memory_id=uuid4())
    return replace(point, chunk_id=uuid4())


async def said(tenant: Tenant) -> None:
    """2,000 events of few texts, which are embedded once, and some memories."""
    made = await tenant.client.conversations.create(user_id="alice")
    for start in range(0, EVENTS, 100):
        events = [user(f"note {number % TEXTS}") for number in range(start, start + 100)]
        await append(tenant.raw, made.conversation_id, *events)
    for number in range(MEMORIES):
        await remembered(tenant, f"memory {number % TEXTS}", tags=["kept"])


@dataclass(slots=True)
class Corruption:
    """Plants 1,000 corruptions, drawn by a seed; says what they are."""

    parts: MirrorParts
    tenant: Tenant
    other: Tenant

    async def plant(self) -> dict[str, int]:
        drawn = random.Random(SEED)
        points = [row.expected for row in await rows_of(self.parts, self.tenant)]
        victims = iter(drawn.sample(points, 1_000))
        dropped = [next(victims) for _ in range(200)]
        await self.parts.vectors.delete_chunks(
            UUID(self.tenant.tenant_id), [id_of(point) for point in dropped]
        )
        stale = [replace(next(victims), made_of="0" * 16) for _ in range(200)]
        nobodys = [replace(renamed(next(victims)), tenant_id=uuid4()) for _ in range(150)]
        theirs = UUID(self.other.tenant_id)
        moved = [replace(next(victims), tenant_id=theirs) for _ in range(MOVED)]
        doubled = [renamed(next(victims)) for _ in range(150)]
        wrong = [changed(next(victims), drawn) for _ in range(200)]
        await self._write([*stale, *nobodys, *moved, *doubled, *wrong])
        return {
            "missing": len(dropped) + len(moved),
            "extra": len(doubled) + len(moved),
            "foreign": len(nobodys),
            "stale": len(stale),
            "wrong_payload": len(wrong),
        }

    async def _write(self, points: Sequence[Point]) -> None:
        vectors = np.random.default_rng(SEED).standard_normal((len(points), 384), np.float32)
        await self.parts.vectors.upsert(
            [with_vectors(point, vector) for point, vector in zip(points, vectors, strict=True)]
        )


def with_vectors(point: Point, vector: Any) -> Point:
    if isinstance(point, MemoryPoint):
        return replace(point, dense=vector)
    return replace(point, dense=vector, bm25=SparseVector((7,), (1.0,)))


def changed(point: Point, drawn: random.Random) -> Point:
    """Another value in one field."""
    both: list[dict[str, Any]] = [
        {"conversation_id": uuid4()},
        {"agent_id": uuid4()},
        {"user_id": "mallory"},
        {"session_id": "stolen"},
    ]
    if isinstance(point, MemoryPoint):
        return replace(point, **drawn.choice([*both, {"tags": ("other",)}]))
    return replace(
        point,
        **drawn.choice(
            [
                *both,
                {"event_id": uuid4()},
                {"seq": point.seq + 1},
                {"branch": 2},
                {"current": False},
                {"role": Role.ASSISTANT},
                {"event_type": EventType.SYSTEM},
                {"tool_name": "hammer"},
                {"event_time": point.event_time + timedelta(microseconds=1)},
                {"chunk_index": 1},
            ]
        ),
    )
