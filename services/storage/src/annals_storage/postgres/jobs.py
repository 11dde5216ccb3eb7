"""Jobs and their leases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from annals_common.errors import JobLeaseLostError
from annals_common.principal import JobLease
from annals_storage.domain.jobs import JobClaim, JobKind, JobTotals, LeasedJob, ParkedJob
from annals_storage.ports.jobs import ParkedCursor
from annals_storage.postgres.database import Database, Statement, Transaction, sql

MAX_ATTEMPTS = 10
QUIET = timedelta(seconds=5)
"""How long changes of a conversation must pause before its jobs are due."""
LATEST = timedelta(minutes=1)
"""Jobs of a conversation that never pauses are due so long after the first change."""

_LEASE = "SELECT * FROM annals.lease_jobs(%(owner)s, %(kinds)s, %(limit)s, %(lease)s, %(most)s)"
_TOTALS = "SELECT * FROM annals.job_totals()"


class PostgresJobs:
    """`LeaseStore` and `JobBacklogs` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lease(
        self, owner: str, kinds: Sequence[JobKind], *, limit: int, lease: timedelta
    ) -> list[LeasedJob]:
        """Lease at most `limit` due jobs of any tenants; see 0008_pre_jobs.sql for whose."""
        params = {
            "owner": owner,
            "kinds": [kind.value for kind in kinds],
            "limit": limit,
            "lease": lease,
            "most": MAX_ATTEMPTS,
        }
        [rows] = await self._database.run_untenanted((_LEASE, params))
        return [LeasedJob(**{**row, "kind": JobKind(row["kind"])}) for row in rows]

    async def find(self, claim: JobClaim) -> JobLease | None:
        """Return the lease a token is of, while it lasts."""
        params = {
            "tenant_id": claim.tenant_id,
            "subject": claim.subject,
            "lease_hash": claim.lease_hash,
        }
        [rows] = await self._database.run(claim.tenant_id, (sql("find_job"), params))
        return JobLease(rows[0]["kind"], claim.subject, claim.lease_hash) if rows else None

    async def heartbeat(self, tenant_id: UUID, held: JobLease, *, lease: timedelta) -> datetime:
        """Prolong a lease from now on; return its end. Raises JobLeaseLostError."""
        row = await self._by_lease(tenant_id, held, "heartbeat_job", lease=lease)
        until: datetime = row["leased_until"]
        return until

    async def complete(self, tenant_id: UUID, held: JobLease, generation: int) -> bool:
        """End a lease; return whether the job is done. Raises JobLeaseLostError."""
        row = await self._by_lease(tenant_id, held, "complete_job", generation=generation)
        return bool(row["is_done"])

    async def fail(self, tenant_id: UUID, held: JobLease, generation: int, error: str) -> bool:
        """Pause a job, or park it after too many; return whether. Raises JobLeaseLostError."""
        row = await self._by_lease(
            tenant_id,
            held,
            "fail_job",
            generation=generation,
            error=error,
            max_attempts=MAX_ATTEMPTS,
        )
        return bool(row["is_parked"])

    async def release(self, tenant_id: UUID, held: JobLease) -> None:
        """End a lease as if it had not been. Raises JobLeaseLostError."""
        await self._by_lease(tenant_id, held, "release_job")

    async def totals(self) -> list[JobTotals]:
        """Return what waits over all tenants, by kind."""
        [rows] = await self._database.run_untenanted((_TOTALS, {}))
        return [_totals_from(row) for row in rows]

    async def backlog(self, tenant_id: UUID, conversation_id: UUID | None) -> list[JobTotals]:
        """Return what waits of a tenant, or of one conversation, by kind."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        [rows] = await self._database.run(tenant_id, (sql("job_backlog"), params))
        return [_totals_from(row) for row in rows]

    async def parked(
        self, tenant_id: UUID, *, cursor: ParkedCursor | None, limit: int
    ) -> list[ParkedJob]:
        """Return at most `limit` jobs that were given up, newest first."""
        cursor_time, cursor_id, cursor_kind = cursor or (None, None, None)
        params = {
            "tenant_id": tenant_id,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
            "cursor_kind": cursor_kind,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_parked_jobs"), params))
        return [ParkedJob(**{**row, "kind": JobKind(row["kind"])}) for row in rows]

    async def retry(self, tenant_id: UUID, conversation_ids: Collection[UUID] = ()) -> int:
        """Have these tried again, or all of the tenant; return how many were parked."""
        params = {"tenant_id": tenant_id, "conversation_ids": list(conversation_ids) or None}
        [rows] = await self._database.run(tenant_id, (sql("retry_parked_jobs"), params))
        return len(rows)

    async def _by_lease(
        self, tenant_id: UUID, held: JobLease, name: str, **params: object
    ) -> dict[str, Any]:
        statement = (sql(name), {**_columns(tenant_id, held), **params})
        [rows] = await self._database.run(tenant_id, statement)
        if not rows:
            raise _lost(held)
        return rows[0]


async def hold_lease(transaction: Transaction, tenant_id: UUID, held: JobLease) -> None:
    """Keep a job from anybody else until the transaction ends. Raises JobLeaseLostError.

    What a worker writes goes into the same transaction: so nothing of a lost lease is written.
    """
    if not await transaction.run(sql("hold_lease"), _columns(tenant_id, held)):
        raise _lost(held)


def enqueued(tenant_id: UUID, conversation_ids: Collection[UUID]) -> Statement:
    """Return the statement that has every kind of work become due for these conversations."""
    return sql("enqueue_jobs"), {
        "tenant_id": tenant_id,
        "conversation_ids": sorted(conversation_ids),
        "kinds": [kind.value for kind in JobKind],
        "quiet": QUIET,
        "latest": LATEST,
    }


def _columns(tenant_id: UUID, held: JobLease) -> dict[str, object]:
    return {
        "tenant_id": tenant_id,
        "subject": held.subject,
        "kind": held.kind,
        "lease_hash": held.lease_hash,
    }


def _totals_from(row: dict[str, Any]) -> JobTotals:
    return JobTotals(**{**row, "kind": JobKind(row["kind"])})


def _lost(held: JobLease) -> JobLeaseLostError:
    return JobLeaseLostError(str(held.subject), held.kind)
