"""Who waits for a lock in PostgreSQL."""

from __future__ import annotations

import asyncio

from tests.support.scratch import run

from annals_local.postgres import LocalPostgres
from annals_storage.postgres.database import numbered, sql

_WAITING = """
SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query = %s
"""


async def waiting_for_lock(postgres: LocalPostgres, name: str) -> int:
    """How many sessions wait for a lock in `postgres/sql/<name>.sql`."""
    query, _ = numbered(sql(name))
    [row] = await asyncio.to_thread(run, postgres.admin_url, _WAITING, [query])
    return int(row["n"])
