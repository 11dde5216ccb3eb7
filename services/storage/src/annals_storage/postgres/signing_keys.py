"""Keys that sign user tokens."""

from __future__ import annotations

from uuid import UUID

from psycopg import errors

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.signing import NewSigningKey, SigningKey
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.rows import signing_key_from


class PostgresSigningKeys:
    """Signing keys of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: UUID, new: NewSigningKey) -> SigningKey:
        """Insert a key. Raises ResourceNotFoundError without the tenant."""
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(new, name) for name in new.__slots__},
            "algorithm": new.algorithm.value,
        }
        try:
            [rows] = await self._database.run(tenant_id, (sql("create_signing_key"), params))
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError("tenant", str(tenant_id)) from error
        return signing_key_from(rows[0])

    async def find(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey | None:
        """Return the key, valid or not."""
        params = {"tenant_id": tenant_id, "signing_key_id": signing_key_id}
        [rows] = await self._database.run(tenant_id, (sql("get_signing_key"), params))
        return signing_key_from(rows[0]) if rows else None

    async def page(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[SigningKey]:
        """Return one page, oldest first."""
        cursor_time, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_signing_keys"), params))
        return [signing_key_from(row) for row in rows]

    async def revoke(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey:
        """Refuse its tokens from now on. Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "signing_key_id": signing_key_id}
        [rows] = await self._database.run(tenant_id, (sql("revoke_signing_key"), params))
        if not rows:
            raise ResourceNotFoundError("signing_key", str(signing_key_id))
        return signing_key_from(rows[0])
