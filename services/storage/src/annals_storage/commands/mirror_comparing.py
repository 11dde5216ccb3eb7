"""Finds what differs between the rows and the points of a tenant, while both may change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from uuid import UUID

from annals_storage.commands.mirror_report import Difference, MirrorParts
from annals_storage.domain.mirror import Drift, MirroredRow, StoredPoint

PAGE = 1_000
SUSPECTS = 500
"""How many are looked at again at a time."""

Counted = Callable[[], None]
Row = tuple[UUID, MirroredRow]


class MirrorComparison:
    """Compares a tenant's chunks and memories with its points: by id, payload, what made them.

    `row_read` and `point_read` are told of each row and point that is compared.
    """

    def __init__(
        self, parts: MirrorParts, tenant_id: UUID, *, row_read: Counted, point_read: Counted
    ) -> None:
        self._rows, self._audit = parts.rows, parts.vectors.audit
        self._tenant_id = tenant_id
        self._row_read, self._point_read = row_read, point_read

    async def differences(self) -> AsyncIterator[list[Difference]]:
        """Yield what differs, some at a time. What waits in the outbox does not count."""
        suspects: dict[UUID, StoredPoint | None] = {}
        async for point_id, point in self._suspects():
            suspects[point_id] = point
            if len(suspects) == SUSPECTS:
                yield await self._confirmed(suspects)
                suspects = {}
        if suspects:
            yield await self._confirmed(suspects)

    async def _suspects(self) -> AsyncIterator[tuple[UUID, StoredPoint | None]]:
        """Walk both sides by id, as in a merge; yield what seems to differ."""
        truth, mirror = self._truth(), self._mirror()
        row, point = await anext(truth, None), await anext(mirror, None)
        while row is not None or point is not None:
            if point is None or (row is not None and row[0] < point.point_id):
                if row is not None:
                    yield row[0], None
                row = await anext(truth, None)
            elif row is None or point.point_id < row[0]:
                yield point.point_id, point
                point = await anext(mirror, None)
            else:
                if self._drift(row[1], point):
                    yield point.point_id, point
                row, point = await anext(truth, None), await anext(mirror, None)

    async def _truth(self) -> AsyncIterator[Row]:
        after: UUID | None = None
        while ids := await self._rows.page(self._tenant_id, after=after, limit=PAGE):
            rows = await self._rows.get(self._tenant_id, ids)
            for point_id in ids:
                # What went between the two reads is no longer expected.
                if row := rows.get(point_id):
                    self._row_read()
                    yield point_id, row
            after = ids[-1]

    async def _mirror(self) -> AsyncIterator[StoredPoint]:
        after: UUID | None = None
        while points := await self._audit.page_of(self._tenant_id, after=after, limit=PAGE):
            for point in points:
                self._point_read()
                yield point
            after = points[-1].point_id

    async def _confirmed(self, suspects: Mapping[UUID, StoredPoint | None]) -> list[Difference]:
        """Look again; return what differs from its row before and after, and waits for nothing.

        The order matters. A change is committed with its entry in the outbox, and the entry goes
        after the points were written. So a row that had no entry when it was read is in the points
        that are read next; unless they are ahead of it, which the row tells when it is read again.
        """
        ids = [*suspects]
        before = await self._rows.get(self._tenant_id, ids)
        waiting = await self._waiting(before.values(), suspects.values())
        points = await self._points(ids)
        after = await self._rows.get(self._tenant_id, ids)
        waiting |= await self._waiting(after.values(), points.values())
        found = []
        for point_id, walked in suspects.items():
            row, point = after.get(point_id), points.get(point_id)
            kind = self._drift(row, point)
            if kind is None or self._drift(before.get(point_id), point) is None:
                continue
            if waiting.isdisjoint(_keys([row, before.get(point_id)], [point, walked])):
                found.append(Difference(kind, point_id, row, point))
        return found

    def _drift(self, row: MirroredRow | None, point: StoredPoint | None) -> Drift | None:
        if row is None:
            return None if point is None else Drift.EXTRA
        if point is None:
            return Drift.MISSING
        return self._audit.drift(point, row.expected)

    async def _points(self, ids: Sequence[UUID]) -> dict[UUID, StoredPoint]:
        own = str(self._tenant_id)
        points = await self._audit.get(ids)
        return {point.point_id: point for point in points if point.tenant == own}

    async def _waiting(
        self, rows: Iterable[MirroredRow], points: Iterable[StoredPoint | None]
    ) -> set[UUID]:
        return await self._rows.waiting(self._tenant_id, _keys(rows, points))


def _keys(rows: Iterable[MirroredRow | None], points: Iterable[StoredPoint | None]) -> set[UUID]:
    """Return whatever the outbox may know these by."""
    either = [*rows, *points]
    return {key for each in either if each is not None for key in each.keys}
