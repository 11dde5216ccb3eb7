"""Receipts of erasures."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from annals_storage.domain.erasure import Counts, ErasureScope, Receipt
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.erasure import added

# Two calls at once share one receipt: the second waits for the first's insert.
_LOCK_SUBJECT = """
SELECT pg_advisory_xact_lock(
  hashtextextended('erasure ' || %(tenant_id)s::text || %(scope)s || %(subject)s, 0))
"""
_BEGIN = """
INSERT INTO annals.erasure_receipts (tenant_id, receipt_id, scope, subject, counts, started_at)
SELECT %(tenant_id)s, %(receipt_id)s, %(scope)s::text, %(subject)s::text, %(counts)s, %(started_at)s
WHERE NOT EXISTS (
  SELECT FROM annals.erasure_receipts
  WHERE tenant_id = %(tenant_id)s AND scope = %(scope)s AND subject = %(subject)s
    AND completed_at IS NULL)
"""
_UNFINISHED = """
SELECT * FROM annals.erasure_receipts
WHERE tenant_id = %(tenant_id)s AND scope = %(scope)s AND subject = %(subject)s
  AND completed_at IS NULL
ORDER BY started_at LIMIT 1
"""
_LIST_UNFINISHED = """
SELECT * FROM annals.erasure_receipts
WHERE tenant_id = %(tenant_id)s AND completed_at IS NULL
ORDER BY started_at LIMIT %(limit)s
"""
_GET_TO_FINISH = """
SELECT * FROM annals.erasure_receipts
WHERE tenant_id = %(tenant_id)s AND receipt_id = %(receipt_id)s
FOR UPDATE
"""
_FINISH = """
UPDATE annals.erasure_receipts SET completed_at = %(completed_at)s, digest = %(digest)s
WHERE tenant_id = %(tenant_id)s AND receipt_id = %(receipt_id)s
"""
_GET = """
SELECT * FROM annals.erasure_receipts
WHERE tenant_id = %(tenant_id)s AND receipt_id = %(receipt_id)s
"""
_PAGE = """
SELECT * FROM annals.erasure_receipts
WHERE tenant_id = %(tenant_id)s
  AND (%(cursor_id)s::uuid IS NULL
       OR (started_at, receipt_id) < (%(cursor_time)s, %(cursor_id)s))
ORDER BY started_at DESC, receipt_id DESC
LIMIT %(limit)s
"""


class PostgresReceipts:
    """Receipts of a tenant, also of one that is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, tenant_id: UUID, receipt: Receipt) -> Receipt:
        """Insert it, or return the unfinished one of the same scope and subject."""
        params = {
            "tenant_id": tenant_id,
            "receipt_id": receipt.receipt_id,
            "scope": receipt.scope.value,
            "subject": receipt.subject,
            "counts": Jsonb(dict(receipt.counts)),
            "started_at": receipt.started_at,
        }
        *_, [row] = await self._database.run(
            tenant_id, (_LOCK_SUBJECT, params), (_BEGIN, params), (_UNFINISHED, params)
        )
        return _receipt(row)

    async def unfinished(self, tenant_id: UUID, scope: ErasureScope, subject: str) -> bool:
        """Whether an erasure of this subject was interrupted."""
        params = {"tenant_id": tenant_id, "scope": scope.value, "subject": subject}
        [rows] = await self._database.run(tenant_id, (_UNFINISHED, params))
        return bool(rows)

    async def list_unfinished(self, tenant_id: UUID, *, limit: int) -> list[Receipt]:
        """Return interrupted erasures, oldest first."""
        params = {"tenant_id": tenant_id, "limit": limit}
        [rows] = await self._database.run(tenant_id, (_LIST_UNFINISHED, params))
        return [_receipt(row) for row in rows]

    async def add(self, tenant_id: UUID, receipt_id: UUID, counts: Counts) -> None:
        """Add to the counts of an unfinished receipt."""
        params = added(tenant_id, receipt_id, counts)
        await self._database.run(tenant_id, (sql("add_erased"), params))

    async def finish(self, tenant_id: UUID, receipt_id: UUID, at: datetime) -> Receipt:
        """Complete it with its digest; return it as stored."""
        params = {"tenant_id": tenant_id, "receipt_id": receipt_id}
        async with self._database.transaction(tenant_id) as tx:
            [row] = await tx.run(_GET_TO_FINISH, params)
            if row["completed_at"] is not None:
                return _receipt(row)
            done = _receipt(row).completed(at)
            await tx.run(_FINISH, {**params, "completed_at": at, "digest": done.digest})
        return done

    async def get(self, tenant_id: UUID, receipt_id: UUID) -> Receipt | None:
        """Return it as stored."""
        params = {"tenant_id": tenant_id, "receipt_id": receipt_id}
        [rows] = await self._database.run(tenant_id, (_GET, params))
        return _receipt(rows[0]) if rows else None

    async def page(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[Receipt]:
        """Return one page, newest first."""
        cursor_time, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (_PAGE, params))
        return [_receipt(row) for row in rows]


def _receipt(row: DictRow) -> Receipt:
    values = {name: row[name] for name in Receipt.__slots__}
    return Receipt(**{**values, "scope": ErasureScope(row["scope"])})
