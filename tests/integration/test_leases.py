"""What one indexer is at, no other begins; what a dead one was at, another does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.support.indexers import GatedMirror, Queue, queue
from tests.support.scratch import ScratchDatabase
from tests.support.waiting import eventually

LEASE = timedelta(seconds=1)
RENEWALS = 5
"""Three a lease: more than one that is not renewed lasts."""
_CHANGED = "UPDATE annals.outbox SET generation = generation + 1 WHERE key = %s"


@pytest.fixture
async def waiting(scratch: ScratchDatabase) -> AsyncIterator[Queue]:
    async with queue(lambda: scratch) as it:
        yield it


async def leased_until(waiting: Queue) -> object:
    rows = await asyncio.to_thread(waiting.rows)
    return rows[0]["available_at"]


async def outlasted(waiting: Queue) -> None:
    """Wait until the lease of the only entry was renewed so often that it must have expired."""
    for _ in range(RENEWALS):
        before = await leased_until(waiting)
        await eventually(lambda: leased_until(waiting), lambda now, it=before: now != it)


async def test_a_lease_lasts_as_long_as_the_work(waiting: Queue) -> None:
    [key] = waiting.put(waiting.tenant(), 1)
    mirror = GatedMirror()
    async with (
        waiting.worked_off(mirror, owner="first", lease=LEASE),
        waiting.worked_off(mirror, owner="second", lease=LEASE),
    ):
        await eventually(lambda: asyncio.sleep(0, mirror.keys()), bool)

        await outlasted(waiting)

        assert mirror.keys() == [key]
        mirror.gate.set()
        await eventually(waiting.left, lambda count: not count)
    assert mirror.keys() == [key]


async def test_what_changes_meanwhile_is_mirrored_once_more_but_not_at_the_same_time(
    waiting: Queue,
) -> None:
    tenant_id = waiting.tenant()
    [key] = waiting.put(tenant_id, 1)
    mirror = GatedMirror()
    async with (
        waiting.worked_off(mirror, owner="first", lease=LEASE),
        waiting.worked_off(mirror, owner="second", lease=LEASE),
    ):
        await eventually(lambda: asyncio.sleep(0, mirror.keys()), bool)
        await asyncio.to_thread(waiting.scratch.admin, _CHANGED, [key])
        await outlasted(waiting)

        mirror.gate.set()

        await eventually(waiting.left, lambda count: not count)
    assert mirror.keys() == [key, key]
    assert mirror.at_once == 1


async def test_another_indexer_takes_over_from_a_dead_one(waiting: Queue) -> None:
    keys = waiting.put(waiting.tenant(), 5)
    dead = await waiting.outbox.claim("dead", limit=10, lease=LEASE)
    mirror = GatedMirror()
    mirror.gate.set()

    async with waiting.worked_off(mirror, owner="alive", lease=LEASE):
        await eventually(waiting.left, lambda count: not count)

    assert sorted(mirror.keys()) == sorted(keys) == sorted(entry.key for entry in dead)


async def test_a_lost_lease_is_not_taken_back(waiting: Queue) -> None:
    waiting.put(waiting.tenant(), 1)
    lost = await waiting.outbox.claim("first", limit=1, lease=timedelta(0))
    [_] = await waiting.outbox.claim("second", limit=1, lease=timedelta(minutes=1))
    until = await leased_until(waiting)

    await waiting.outbox.renew("first", lost, lease=timedelta(hours=1))

    assert await leased_until(waiting) == until


async def test_a_failure_of_what_changed_meanwhile_pauses_nobody(waiting: Queue) -> None:
    [key] = waiting.put(waiting.tenant(), 1)
    entries = await waiting.outbox.claim("first", limit=1, lease=timedelta(minutes=1))
    await asyncio.to_thread(waiting.scratch.admin, _CHANGED, [key])

    await waiting.outbox.fail("first", entries, "of the former words")

    [again] = await waiting.outbox.claim("second", limit=1, lease=timedelta(minutes=1))
    assert again.key == key
