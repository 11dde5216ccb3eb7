"""Background work that is due, and who is at it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from annals_common.principal import JobLease
from annals_storage.domain.jobs import JobClaim, JobKind, JobTotals, LeasedJob, ParkedJob

ParkedCursor = tuple[datetime, UUID, JobKind]


class LeaseStore(Protocol):
    """Leases of jobs. What a lease is needed for raises JobLeaseLostError once it has ended."""

    async def lease(
        self, owner: str, kinds: Sequence[JobKind], *, limit: int, lease: timedelta
    ) -> list[LeasedJob]:
        """Lease at most `limit` due jobs, each tenant an equal part."""

    async def find(self, claim: JobClaim) -> JobLease | None:
        """Return the lease a token is of, while it lasts."""

    async def heartbeat(self, tenant_id: UUID, held: JobLease, *, lease: timedelta) -> datetime:
        """Prolong a lease from now on; return its end."""

    async def complete(self, tenant_id: UUID, held: JobLease, generation: int) -> bool:
        """End a lease. Return whether the job is done; else it changed meanwhile and is due."""

    async def fail(self, tenant_id: UUID, held: JobLease, generation: int, error: str) -> bool:
        """End a lease after a failure. Return whether the job was given up."""

    async def release(self, tenant_id: UUID, held: JobLease) -> None:
        """End a lease as if it had not been."""


class JobBacklogs(Protocol):
    """What waits and what was given up."""

    async def totals(self) -> list[JobTotals]:
        """Return what waits over all tenants, by kind."""

    async def backlog(self, tenant_id: UUID, conversation_id: UUID | None) -> list[JobTotals]:
        """Return what waits of a tenant, or of one conversation, by kind."""

    async def parked(
        self, tenant_id: UUID, *, cursor: ParkedCursor | None, limit: int
    ) -> list[ParkedJob]:
        """Return at most `limit` jobs that were given up, newest first."""

    async def retry(self, tenant_id: UUID, conversation_ids: Collection[UUID] = ()) -> int:
        """Have these tried again, or all of the tenant; return how many were parked."""
