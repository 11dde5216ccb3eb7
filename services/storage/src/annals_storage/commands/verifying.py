"""Compares the mirror with PostgreSQL, in bounded memory, and has it made anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from annals_storage.ports.outbox import Outbox
from annals_storage.ports.tenancy import TenantStore
from annals_storage.ports.vectors import VectorIndex

PAGE = 1_000
Chunk = tuple[UUID, UUID]
"""(chunk_id, event_id)."""
PageOfChunks = Callable[[UUID | None], Awaitable[list[Chunk]]]


@dataclass(slots=True)
class MirrorReport:
    """What was compared and what differs. Chunks waiting in the outbox count as missing."""

    tenants: int = 0
    chunks: int = 0
    missing: int = 0
    extra: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether the mirror holds exactly the chunks of PostgreSQL."""
        return not self.missing and not self.extra

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


async def verify_mirror(tenants: TenantStore, outbox: Outbox, vectors: VectorIndex) -> MirrorReport:
    """Compare every tenant's chunks by id."""
    report = MirrorReport()
    async for tenant_id in _tenant_ids(tenants):
        report.tenants += 1
        await _compare(tenant_id, outbox, vectors, report)
    return report


async def reindex(tenants: TenantStore, outbox: Outbox) -> int:
    """Have every conversation mirrored again, as after the loss of the engine's data.

    Return how many conversations were enqueued; the indexer does the rest.
    """
    return sum([await outbox.enqueue_tenant(tenant_id) async for tenant_id in _tenant_ids(tenants)])


async def _tenant_ids(tenants: TenantStore) -> AsyncIterator[UUID]:
    cursor = None
    while page := await tenants.page(cursor=cursor, limit=PAGE):
        for tenant in page:
            yield tenant.tenant_id
        cursor = (page[-1].created_at, page[-1].tenant_id)


async def _compare(
    tenant_id: UUID, outbox: Outbox, vectors: VectorIndex, report: MirrorReport
) -> None:
    """Walk both sides in the order of chunk ids, as in a merge."""
    truth = _walk(lambda after: outbox.list_chunks(tenant_id, after=after, limit=PAGE))
    mirror = _walk(lambda after: vectors.list_chunks(tenant_id, after=after, limit=PAGE))
    left, right = await anext(truth, None), await anext(mirror, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left < right):
            report.missing += 1
            report.chunks += 1
            left = await anext(truth, None)
        elif left is None or right < left:
            report.extra += 1
            right = await anext(mirror, None)
        else:
            report.chunks += 1
            left, right = await anext(truth, None), await anext(mirror, None)


async def _walk(page: PageOfChunks) -> AsyncIterator[UUID]:
    after: UUID | None = None
    while chunks := await page(after):
        for chunk_id, _ in chunks:
            yield chunk_id
        after = chunks[-1][0]
