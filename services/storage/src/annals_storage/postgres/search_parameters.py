"""Where tenants' own search parameters are kept."""

from __future__ import annotations

from uuid import UUID

from psycopg import errors
from psycopg.types.json import Jsonb

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.search_parameters import Overrides
from annals_storage.postgres.database import Database

_GET = """
SELECT coalesce(p.overrides, '{}') AS overrides
FROM annals.tenants AS t
LEFT JOIN annals.search_parameters AS p ON p.tenant_id = t.tenant_id
WHERE t.tenant_id = %(tenant_id)s
"""
_CHANGE = """
INSERT INTO annals.search_parameters AS p (tenant_id, overrides)
VALUES (%(tenant_id)s, %(values)s)
ON CONFLICT (tenant_id) DO UPDATE
SET overrides = (p.overrides - %(reset)s::text[]) || excluded.overrides, updated_at = now()
RETURNING overrides
"""


class PostgresSearchParameters:
    """One row for a tenant that has overrides."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tenant_id: UUID) -> Overrides:
        """Return the tenant's own values by name. Raises ResourceNotFoundError."""
        [rows] = await self._database.run(tenant_id, (_GET, {"tenant_id": tenant_id}))
        if not rows:
            raise ResourceNotFoundError("tenant", str(tenant_id))
        overrides: Overrides = rows[0]["overrides"]
        return overrides

    async def change(self, tenant_id: UUID, values: Overrides) -> Overrides:
        """Set values by name, None: forget; return all. Raises ResourceNotFoundError."""
        params = {
            "tenant_id": tenant_id,
            "values": Jsonb({name: value for name, value in values.items() if value is not None}),
            "reset": [name for name, value in values.items() if value is None],
        }
        try:
            [[row]] = await self._database.run(tenant_id, (_CHANGE, params))
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError("tenant", str(tenant_id)) from error
        overrides: Overrides = row["overrides"]
        return overrides
