"""Mends what a verification of the mirror found.

Points are never written here: what must be mirrored is enqueued, and the indexer reads the rows
as they are then. So a repair brings nothing back that is deleted or erased at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from annals_storage.commands.mirror_report import Difference, MirrorParts
from annals_storage.domain.mirror import Drift, StoredPoint


class Mended(NamedTuple):
    """How many points were deleted, and how many events and memories enqueued."""

    deleted: int
    enqueued: int


class MendMirror:
    """Deletes points that nothing stands behind; has the others mirrored again."""

    def __init__(self, parts: MirrorParts) -> None:
        self._rows, self._audit = parts.rows, parts.vectors.audit

    async def tenant(self, tenant_id: UUID, differences: Sequence[Difference]) -> Mended:
        """Mend what differs in a tenant."""
        extra = [each for each in differences if each.kind is Drift.EXTRA]
        extra_ids = [each.point_id for each in extra]
        await self._audit.delete(str(tenant_id), extra_ids)
        sources = {each.row.source_id for each in differences if each.row}
        sources.update(key for each in extra if each.point for key in each.point.keys)
        # What has a row by now may have been mirrored just before it was deleted.
        come = await self._rows.get(tenant_id, extra_ids)
        sources.update(row.source_id for row in come.values())
        return Mended(len(extra_ids), await self._rows.enqueue(tenant_id, sources))

    async def foreign(self, points: Sequence[StoredPoint]) -> Mended:
        """Delete points of tenants there are not, unless they are another tenant's by now."""
        by_tenant = sorted(points, key=lambda point: point.tenant or "")
        for tenant, theirs in groupby(by_tenant, key=lambda point: point.tenant):
            await self._audit.delete(tenant, [point.point_id for point in theirs])
        return Mended(len(points), 0)
