"""Whether filters cost hits: what the engine finds beside what a comparison with all of it finds.

The comparison is brute force over the same float16 vectors. Conversations hold a thousandth, a
hundredth and a tenth of the points, and one the rest; times and roles cut across them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from tests.bench.harness import Report

from annals_storage.domain.events import Role
from annals_storage.domain.search import ChunkPoint, DenseVector, SearchScope, Signal, VectorQuery
from annals_storage.ports.vectors import VectorIndex

DEPTHS = (10, 100)
TARGET = ">= 0.98"
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one tenant; `vectors` as the engine keeps them, shape (points, dimensions)."""

    points: list[ChunkPoint]
    vectors: NDArray[np.float16]

    @classmethod
    async def collected(cls, batches: AsyncIterator[list[ChunkPoint]]) -> Points:
        """Keep points that are being written."""
        points = [point async for batch in batches for point in batch]
        return cls(points, np.array([point.dense for point in points], np.float16))

    def nearest(self, query: DenseVector, within: Mask, limit: int) -> list[UUID]:
        """Return the ids of the nearest points within the mask, best first."""
        places = np.flatnonzero(within)
        cosines = self.vectors[places].astype(np.float32) @ _as_kept(query)
        best = places[np.argsort(-cosines)[:limit]]
        return [self.points[place].chunk_id for place in best]


@dataclass(frozen=True, slots=True)
class Filter:
    """A scope, and which points are in it."""

    name: str
    scope: SearchScope
    within: Mask


def filters_of(points: Points, conversations: Mapping[float, str]) -> Iterator[Filter]:
    """Yield filters of each selectivity. `conversations`: by the share of the points they hold."""
    tenant_id = points.points[0].tenant_id
    everything = np.ones(len(points.points), dtype=np.bool_)
    yield Filter("100_percent", SearchScope(tenant_id), everything)
    rooms = np.array([str(point.conversation_id) for point in points.points])
    users = np.array([point.role is Role.USER for point in points.points])
    times = np.array([point.event_time for point in points.points])
    newest_first = sorted(times, reverse=True)
    for share, room in conversations.items():
        name, count = f"{share * 100:g}_percent", round(share * len(times))
        since, earlier = newest_first[count - 1], newest_first[min(2 * count, len(times)) - 1]
        in_room = SearchScope(tenant_id, conversation_ids=(UUID(room),))
        yield Filter(f"{name}_by_conversation", in_room, rooms == room)
        yield Filter(f"{name}_by_time", SearchScope(tenant_id, start_time=since), times >= since)
        of_users = SearchScope(tenant_id, roles=(Role.USER,), start_time=earlier)
        yield Filter(f"{name}_by_role_and_time", of_users, users & (times >= earlier))


async def add_recalls(
    engine: str,
    index: VectorIndex,
    points: Points,
    conversations: Mapping[float, str],
    queries: Sequence[DenseVector],
    report: Report,
) -> None:
    """Add the mean recall with each filter at each depth."""
    for chosen in filters_of(points, conversations):
        selected = chosen.within.mean() * 100
        report.note(f"{chosen.name}: {selected:.3g} % of {len(chosen.within)} points")
        recalls = [await _recalls(index, points, chosen, query) for query in queries]
        for depth, values in zip(DEPTHS, zip(*recalls, strict=True), strict=True):
            name = f"{engine}_recall_{depth}_{chosen.name}"
            report.add(name, float(np.mean(values)), "share", TARGET)


async def _recalls(
    index: VectorIndex, points: Points, chosen: Filter, query: DenseVector
) -> list[float]:
    """Return the share of the nearest that are among as many found, at each depth."""
    truth = points.nearest(query, chosen.within, max(DEPTHS))
    answer = await index.query(VectorQuery(chosen.scope, max(DEPTHS), dense=query))
    found = [chunk.chunk_id for chunk in answer[Signal.DENSE]]
    return [len({*found[:k]} & {*truth[:k]}) / len(truth[:k]) for k in DEPTHS]


def _as_kept(query: DenseVector) -> NDArray[np.float32]:
    """Return the query as precise as the vectors it is compared with."""
    rounded: NDArray[np.float32] = query.astype(np.float16).astype(np.float32)
    return rounded
