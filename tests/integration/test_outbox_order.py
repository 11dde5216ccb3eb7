"""Who is mirrored first: what somebody waits for, all in turn, and bulk never last for good."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.indexers import Queue, queue
from tests.support.scratch import ScratchDatabase

from annals_storage.domain.indexing import OutboxEntry, OutboxKind, Priority
from annals_storage.indexer.parts import by_lane_and_tenant, cut_by_bytes

BULK = int(Priority.BULK)
CLAIM = 256
MANY = 20_000


@pytest.fixture
async def waiting(scratch: ScratchDatabase) -> AsyncIterator[Queue]:
    async with queue(lambda: scratch) as it:
        yield it


async def claimed(waiting: Queue, limit: int = CLAIM) -> list[OutboxEntry]:
    return await waiting.outbox.claim("indexer", limit=limit, lease=timedelta(minutes=5))


class TestClaims:
    async def test_what_somebody_waits_for_goes_before_older_bulk(self, waiting: Queue) -> None:
        tenant_id = waiting.tenant()
        waiting.put(tenant_id, 2 * CLAIM, priority=BULK)
        wanted = waiting.put(tenant_id, CLAIM // 2)

        first = by_lane_and_tenant(await claimed(waiting))

        assert {entry.key for entry in first[0]} == set(wanted)
        assert sum(map(len, first)) == CLAIM

    async def test_an_eighth_is_bulk_whatever_else_waits(self, waiting: Queue) -> None:
        busy, loading = waiting.tenant(), waiting.tenant()
        bulk = waiting.put(loading, CLAIM, priority=BULK)
        waiting.put(busy, 4 * CLAIM)

        first = await claimed(waiting)

        assert {e.key for e in first if e.priority == BULK} == set(bulk[: CLAIM // 8])
        assert len(first) == CLAIM

    @pytest.mark.parametrize("lane", list(Priority))
    async def test_one_tenants_backlog_does_not_hold_up_another(
        self, waiting: Queue, lane: Priority
    ) -> None:
        waiting.put(waiting.tenant(), MANY, priority=int(lane))
        message = waiting.put(waiting.tenant(), 1, priority=int(lane))

        assert message[0] in {entry.key for entry in await claimed(waiting)}

    async def test_many_tenants_share_a_claim_and_all_get_their_turn(self, waiting: Queue) -> None:
        tenants = [waiting.tenant() for _ in range(40)]
        for tenant_id in tenants:
            waiting.put(tenant_id, 20)

        claims = [await claimed(waiting) for _ in range(15)]

        assert set(Counter(entry.tenant_id for entry in claims[0]).values()) == {CLAIM // 16}
        taken = [entry.key for claim in claims for entry in claim]
        assert len(taken) == len(set(taken)) == 40 * 20

    async def test_within_a_tenant_the_oldest_go_first(self, waiting: Queue) -> None:
        keys = waiting.put(waiting.tenant(), 2 * CLAIM)

        assert {entry.key for entry in await claimed(waiting)} == set(keys[:CLAIM])

    async def test_a_claim_reads_no_more_for_a_long_outbox(self, waiting: Queue) -> None:
        waiting.put(waiting.tenant(), MANY, priority=BULK)
        waiting.scratch.admin("ANALYZE annals.outbox")

        assert await asyncio.to_thread(rows_read_by_claim, waiting.scratch) < 10 * CLAIM


def rows_read_by_claim(scratch: ScratchDatabase) -> int:
    """How many rows of the outbox a claim reads, by whatever way."""
    with psycopg.connect(scratch.app_url) as connection:
        connection.execute("SELECT * FROM annals.lease_outbox('x', %s, '1 min')", [CLAIM])
        row = connection.execute(
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_all_tables "
            "WHERE relname = 'outbox'"
        ).fetchone()
    assert row is not None
    return int(sum(row))


def entry_of(**given: object) -> OutboxEntry:
    values = {"tenant_id": UUID(int=1), "kind": OutboxKind.EVENT, "key": uuid4(), "generation": 1,
              "conversation_id": uuid4(), "attempts": 1}  # fmt: skip
    return OutboxEntry(**{**values, **given})  # type: ignore[arg-type]


class TestParts:
    def test_texts_in_memory_are_bounded_by_their_bytes(self) -> None:
        entries = [entry_of() for _ in range(9)]
        sizes = dict(zip([e.key for e in entries], [40, 40, 20, 1, 500, 1, 99, 2, 0], strict=True))

        parts = list(cut_by_bytes(entries, sizes, max_bytes=100))

        totals = [[sizes[entry.key] for entry in part] for part in parts]
        assert totals == [[40, 40, 20], [1], [500], [1, 99], [2, 0]]
        assert all(sum(a) + b[0] > 100 for a, b in pairwise(totals))

    def test_what_somebody_waits_for_is_mirrored_first_within_a_claim(self) -> None:
        bulk = entry_of(priority=BULK)
        wanted = entry_of(tenant_id=UUID(int=2))

        assert by_lane_and_tenant([bulk, wanted]) == [[wanted], [bulk]]
