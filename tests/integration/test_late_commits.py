"""Transactions that commit late and out of order: every row is mirrored, none is skipped.

`ROWS=100000 CONNECTIONS=60 pytest tests/integration/test_late_commits.py` takes minutes.
"""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from uuid import UUID

import pytest
from tests.support.indexers import GatedMirror, queue
from tests.support.scratch import ScratchDatabase
from tests.support.waiting import eventually
from tests.support.writing import Writer, writing

ROWS = int(os.environ.get("ROWS", "2000"))
CONNECTIONS = int(os.environ.get("CONNECTIONS", "25"))
ROWS_PER_COMMIT = 50 if ROWS > 10_000 else 20
LEASE = timedelta(seconds=30)
_LATE = """
CREATE FUNCTION public.commit_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(2 * random() ^ 2); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER commit_late AFTER UPDATE ON annals.conversations
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.commit_late();
"""
_AFTER = """
SELECT event_id, created_at FROM annals.events
WHERE created_at > coalesce(%s::timestamptz, '-infinity') ORDER BY created_at
"""


class Cursor:
    """The worker we do not have: it remembers how far it has read."""

    def __init__(self, scratch: ScratchDatabase) -> None:
        self._scratch = scratch
        self._read_until: object = None
        self.seen: set[UUID] = set()

    async def read_on(self) -> None:
        rows = await asyncio.to_thread(self._scratch.admin, _AFTER, [self._read_until])
        self.seen |= {row["event_id"] for row in rows}
        self._read_until = rows[-1]["created_at"] if rows else self._read_until


async def _write(writer: Writer, count: int) -> list[UUID]:
    for _ in range(count):
        await writer.append(ROWS_PER_COMMIT)
    return writer.event_ids


@pytest.mark.timeout(600)
async def test_none_is_skipped(scratch: ScratchDatabase) -> None:
    scratch.admin(_LATE)
    cursor, mirror = Cursor(scratch), GatedMirror()
    mirror.gate.set()
    commits = ROWS // ROWS_PER_COMMIT // CONNECTIONS
    async with (
        writing(scratch, connections=CONNECTIONS) as make,
        queue(lambda: scratch) as waiting,
        waiting.worked_off(mirror, owner="indexer", lease=LEASE),
    ):
        writers = [await make() for _ in range(CONNECTIONS)]
        writes = asyncio.gather(*[_write(writer, commits) for writer in writers])
        while not writes.done():
            await cursor.read_on()
            await asyncio.sleep(0)
        stored = {event_id for ids in writes.result() for event_id in ids}
        await cursor.read_on()
        await eventually(waiting.left, lambda count: not count, timeout_s=30 + ROWS / 1_000)

    assert len(stored) == commits * CONNECTIONS * ROWS_PER_COMMIT
    assert set(mirror.keys()) == stored
    assert cursor.seen < stored, "the commits were not late enough to tell"
