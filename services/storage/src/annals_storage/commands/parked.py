"""What was given up, over all tenants: for the operator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from annals_storage.domain.indexing import ParkedEntry
from annals_storage.domain.jobs import ParkedJob
from annals_storage.ports.jobs import JobBacklogs
from annals_storage.ports.parked import ParkedEntries
from annals_storage.ports.tenancy import TenantStore

PAGE = 1_000


async def list_parked(
    tenants: TenantStore, parked: ParkedEntries, tenant_id: UUID | None
) -> AsyncIterator[tuple[UUID, ParkedEntry]]:
    """Yield (tenant_id, entry), newest first within a tenant.

    Raises ResourceNotFoundError for a tenant there is not.
    """
    async for each in _chosen(tenants, tenant_id):
        cursor = None
        while page := await parked.page(each, cursor=cursor, limit=PAGE):
            for entry in page:
                yield each, entry
            cursor = (page[-1].parked_at, page[-1].key)


async def retry_parked(tenants: TenantStore, parked: ParkedEntries, tenant_id: UUID | None) -> int:
    """Have all that was given up tried again; return how many. Raises ResourceNotFoundError."""
    return sum([await parked.retry(each) async for each in _chosen(tenants, tenant_id)])


async def list_parked_jobs(
    tenants: TenantStore, jobs: JobBacklogs, tenant_id: UUID | None
) -> AsyncIterator[tuple[UUID, ParkedJob]]:
    """Yield (tenant_id, job), newest first within a tenant.

    Raises ResourceNotFoundError for a tenant there is not.
    """
    async for each in _chosen(tenants, tenant_id):
        cursor = None
        while page := await jobs.parked(each, cursor=cursor, limit=PAGE):
            for job in page:
                yield each, job
            cursor = (page[-1].parked_at, page[-1].subject, page[-1].kind)


async def retry_parked_jobs(tenants: TenantStore, jobs: JobBacklogs, tenant_id: UUID | None) -> int:
    """Have all that was given up tried again; return how many. Raises ResourceNotFoundError."""
    return sum([await jobs.retry(each) async for each in _chosen(tenants, tenant_id)])


async def _chosen(tenants: TenantStore, tenant_id: UUID | None) -> AsyncIterator[UUID]:
    if tenant_id is not None:
        yield (await tenants.get(tenant_id)).tenant_id
        return
    cursor = None
    while page := await tenants.page(cursor=cursor, limit=PAGE):
        for tenant in page:
            yield tenant.tenant_id
        cursor = (page[-1].created_at, page[-1].tenant_id)
