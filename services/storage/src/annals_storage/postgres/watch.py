"""Reads what finished transactions brought."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from annals_storage.domain.watching import Arrival, Arrivals, Mark, Part, Place
from annals_storage.postgres.database import Database, sql

MAX_ARRIVALS = 1_000
"""Observations one look takes in; a transaction of more is read part by part."""


class PostgresWatch:
    """The order in which an agent's events came."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self) -> Mark:
        """Return the present moment."""
        [[row]] = await self._database.run_untenanted((sql("watch_mark"), {}))
        return Mark(row["incarnation"], int(row["horizon"]))

    async def arrivals(self, tenant_id: UUID, agent_id: UUID, place: Place) -> Arrivals:
        """Return what came after the place and can be complete."""
        resumed_within = place.conversation_id is not None
        first_xid = place.xid if resumed_within else place.xid + 1
        params = {
            "tenant_id": tenant_id,
            "agent_id": agent_id,
            "xid": str(first_xid),
            "limit": MAX_ARRIVALS + 1,
        }
        [rows] = await self._database.run(tenant_id, (sql("watch_agent"), params))
        return _arrivals(rows, place)

    async def parts(self, tenant_id: UUID, agent_id: UUID, xid: int) -> list[Part]:
        """Return what a large transaction brought to the agent, by conversation."""
        params = {"tenant_id": tenant_id, "agent_id": agent_id, "xid": str(xid)}
        [rows] = await self._database.run(tenant_id, (sql("watch_agent_parts"), params))
        return [Part(xid=xid, **row) for row in rows]


def _arrivals(rows: Sequence[DictRow], place: Place) -> Arrivals:
    first = rows[0]
    mark = Mark(first["incarnation"], int(first["horizon"]))
    if first["found"] <= MAX_ARRIVALS:
        # Without an event, a transaction below the horizon has nothing to bring any more.
        until = max(mark.horizon - 1, place.xid)
        return Arrivals(mark, _after(rows, place, until), until, cut=False)
    if first["first_xid"] == first["last_xid"]:
        return Arrivals(mark, (), place.xid, cut=True, large_xid=int(first["last_xid"]))
    # The last transaction may have been cut: the next look begins with it.
    until = int(first["last_xid"]) - 1
    return Arrivals(mark, _after(rows, place, until), until, cut=True)


def _after(rows: Sequence[DictRow], place: Place, until: int) -> tuple[Arrival, ...]:
    arrivals = (
        Arrival(
            xid=int(row["xid"]),
            conversation_id=row["conversation_id"],
            seq=row["seq"],
            event_id=row["event_id"],
            text_bytes=row["text_bytes"],
        )
        for row in rows
        if row["event_id"] is not None
    )
    return tuple(item for item in arrivals if item.xid <= until and place.is_before(item))
