"""Jobs: gathered while a conversation changes, worked off by one worker at a time, given up."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.scratch import ScratchDatabase

from annals_common.errors import JobLeaseLostError
from annals_common.principal import JobLease
from annals_storage.domain.jobs import JobKind, LeasedJob
from annals_storage.postgres.database import Database
from annals_storage.postgres.jobs import MAX_ATTEMPTS, PostgresJobs, enqueued, hold_lease

MINUTE = timedelta(minutes=1)
NOW = timedelta(0)
BOTH = tuple(JobKind)
TOPICS = (JobKind.TOPICS,)


@dataclass(frozen=True, slots=True)
class Work:
    """The jobs of a database of its own."""

    scratch: ScratchDatabase
    database: Database
    jobs: PostgresJobs

    def tenant(self) -> UUID:
        tenant_id = uuid4()
        self.scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [tenant_id])
        return tenant_id

    def room(self, tenant_id: UUID) -> UUID:
        room = uuid4()
        self.scratch.admin(
            "INSERT INTO annals.conversations (tenant_id, conversation_id) VALUES (%s, %s)",
            [tenant_id, room],
        )
        return room

    async def change(self, tenant_id: UUID, *rooms: UUID, due: bool = True) -> None:
        """Have the jobs of these conversations become due, now or when changes pause."""
        await self.database.run(tenant_id, enqueued(tenant_id, rooms))
        if due:
            self.scratch.admin("UPDATE annals.jobs SET available_at = now()")

    def rows(self) -> list[dict[str, Any]]:
        return self.scratch.admin("SELECT * FROM annals.jobs ORDER BY subject, kind")

    async def lease(
        self, owner: str = "a", limit: int = 10, lease: timedelta = MINUTE
    ) -> list[LeasedJob]:
        return await self.jobs.lease(owner, TOPICS, limit=limit, lease=lease)


@pytest.fixture
async def work(scratch: ScratchDatabase) -> AsyncIterator[Work]:
    database = Database(scratch.app_url)
    await database.open()
    try:
        yield Work(scratch, database, PostgresJobs(database))
    finally:
        await database.close()


def held(job: LeasedJob) -> JobLease:
    return JobLease(job.kind, job.subject, hashlib.sha256(job.secret).digest())


async def test_changes_are_gathered_until_they_pause_but_not_for_ever(work: Work) -> None:
    tenant_id = work.tenant()
    room = work.room(tenant_id)
    await work.change(tenant_id, room, due=False)

    assert await work.lease() == []
    await work.change(tenant_id, room, due=False)
    quiet = work.rows()
    work.scratch.admin("UPDATE annals.jobs SET enqueued_at = now() - interval '1 hour'")
    await work.change(tenant_id, room, due=False)

    assert [row["generation"] for row in quiet] == [2, 2]
    assert all(row["available_at"] > row["enqueued_at"] for row in quiet)
    assert [job.generation for job in await work.lease()] == [3]


async def test_nothing_is_due_for_what_is_deleted_or_nobodys(work: Work) -> None:
    tenant_id, other = work.tenant(), work.tenant()
    deleted, theirs = work.room(tenant_id), work.room(other)
    work.scratch.admin(
        "UPDATE annals.conversations SET deleted_at = now() WHERE conversation_id = %s", [deleted]
    )

    await work.change(tenant_id, deleted, theirs, uuid4())

    assert work.rows() == []


async def test_one_worker_at_a_time_is_at_a_job(work: Work) -> None:
    tenant_id = work.tenant()
    await work.change(tenant_id, *[work.room(tenant_id) for _ in range(20)])

    found = await asyncio.gather(*[work.lease(f"worker {n}", limit=4) for n in range(8)])

    subjects = [job.subject for jobs in found for job in jobs]
    assert len(subjects) == len(set(subjects)) == 20
    assert await work.lease() == []


async def test_tenants_take_turns(work: Work) -> None:
    large, small = work.tenant(), work.tenant()
    await work.change(large, *[work.room(large) for _ in range(20)])
    await work.change(small, work.room(small))

    found = await work.lease(limit=4)

    assert {job.tenant_id for job in found} == {large, small}


async def test_what_changes_meanwhile_is_due_again(work: Work) -> None:
    tenant_id = work.tenant()
    room = work.room(tenant_id)
    await work.change(tenant_id, room)
    [job] = await work.lease()
    await work.change(tenant_id, room)

    assert await work.lease() == []
    assert not await work.jobs.complete(tenant_id, held(job), job.generation)
    [again] = await work.lease()

    assert (again.generation, again.attempts) == (2, 1)
    assert await work.jobs.complete(tenant_id, held(again), again.generation)
    assert [row["kind"] for row in work.rows()] == ["summaries"]


class TestLostLeases:
    async def test_do_nothing_and_write_nothing(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))
        [lost] = await work.lease("first", lease=NOW)
        [job] = await work.lease("second")
        before = work.rows()

        for act in (
            work.jobs.complete(tenant_id, held(lost), 1),
            work.jobs.fail(tenant_id, held(lost), 1, "e"),
            work.jobs.release(tenant_id, held(lost)),
            work.jobs.heartbeat(tenant_id, held(lost), lease=MINUTE),
            self.write(work, tenant_id, lost),
        ):
            with pytest.raises(JobLeaseLostError):
                await act

        assert work.rows() == before
        assert job.attempts == 2
        await self.write(work, tenant_id, job)

    async def write(self, work: Work, tenant_id: UUID, job: LeasedJob) -> None:
        async with work.database.transaction(tenant_id) as transaction:
            await hold_lease(transaction, tenant_id, held(job))

    async def test_nobody_gets_a_job_while_its_result_is_written(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))
        [job] = await work.lease()

        async with work.database.transaction(tenant_id) as transaction:
            await hold_lease(transaction, tenant_id, held(job))
            ending = "UPDATE annals.jobs SET leased_until = now() WHERE kind = 'summaries'"
            work.scratch.admin(ending)
            assert await work.lease("second") == []

    async def test_a_heartbeat_keeps_a_lease(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))
        [job] = await work.lease()

        until = await work.jobs.heartbeat(tenant_id, held(job), lease=timedelta(hours=1))

        assert until > job.leased_until + timedelta(minutes=30)

    async def test_of_a_conversation_that_was_erased_are_gone(self, work: Work) -> None:
        tenant_id = work.tenant()
        room = work.room(tenant_id)
        await work.change(tenant_id, room)
        [job] = await work.lease()
        work.scratch.admin("DELETE FROM annals.jobs")

        with pytest.raises(JobLeaseLostError):
            await self.write(work, tenant_id, job)


class TestFailures:
    async def test_pause_a_job_and_park_it_in_the_end(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))
        parked = []
        for _ in range(MAX_ATTEMPTS):
            work.scratch.admin("UPDATE annals.jobs SET available_at = now()")
            [job] = await work.lease()
            parked.append(await work.jobs.fail(tenant_id, held(job), 1, "MemoryError"))

        work.scratch.admin("UPDATE annals.jobs SET available_at = now()")
        assert parked == [False] * (MAX_ATTEMPTS - 1) + [True]
        assert await work.lease() == []
        [entry] = await work.jobs.parked(tenant_id, cursor=None, limit=10)
        assert (entry.kind, entry.error, entry.attempts) == (
            JobKind.TOPICS, "MemoryError", MAX_ATTEMPTS
        )  # fmt: skip

    async def test_keep_their_pause_when_more_changes(self, work: Work) -> None:
        tenant_id = work.tenant()
        room = work.room(tenant_id)
        await work.change(tenant_id, room)
        [job] = await work.lease()
        await work.jobs.fail(tenant_id, held(job), 1, "e")
        paused = work.rows()[-1]["available_at"]

        await work.change(tenant_id, room, due=False)

        assert work.rows()[-1]["available_at"] == paused

    async def test_of_workers_that_die_park_a_job_as_well(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))

        for _ in range(MAX_ATTEMPTS):
            assert len(await work.lease(lease=NOW)) == 1

        assert await work.lease() == []
        [entry] = await work.jobs.parked(tenant_id, cursor=None, limit=10)
        assert entry.error == "the worker ended without a word"

    async def test_are_forgiven_when_asked_or_when_more_changes(self, work: Work) -> None:
        tenant_id, other = work.tenant(), work.tenant()
        rooms = [work.room(tenant_id) for _ in range(2)]
        await work.change(tenant_id, *rooms)
        work.scratch.admin("UPDATE annals.jobs SET parked_at = now(), attempts = 10")

        assert await work.jobs.retry(other) == 0
        assert await work.jobs.retry(tenant_id, [rooms[0]]) == len(BOTH)
        assert [job.subject for job in await work.lease()] == [rooms[0]]
        await work.change(tenant_id, rooms[1])

        assert [job.subject for job in await work.lease()] == [rooms[1]]

    async def test_nobody_is_blamed_when_a_worker_stops(self, work: Work) -> None:
        tenant_id = work.tenant()
        await work.change(tenant_id, work.room(tenant_id))
        [job] = await work.lease()

        await work.jobs.release(tenant_id, held(job))

        [again] = await work.lease()
        assert (again.attempts, again.secret != job.secret) == (1, True)


async def test_totals_tell_what_waits(work: Work) -> None:
    tenant_id = work.tenant()
    await work.change(tenant_id, *[work.room(tenant_id) for _ in range(3)])
    work.scratch.admin("UPDATE annals.jobs SET parked_at = now() WHERE kind = 'summaries'")

    found = {each.kind: each for each in await work.jobs.totals()}

    assert (found[JobKind.TOPICS].pending, found[JobKind.TOPICS].parked) == (3, 0)
    assert (found[JobKind.SUMMARIES].pending, found[JobKind.SUMMARIES].parked) == (0, 3)
