"""The loop of a worker: lease, run, say how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import structlog

from annals_common.cancellation import pause
from annals_common.errors import AnnalsError
from annals_common.failures import without_content
from annals_context.workers.jobs import Command, Job, Jobs
from annals_context.workers.metrics import JOB_SECONDS, JOBS, RUNNING

LEASE_SECONDS = 60
HEARTBEATS_PER_LEASE = 3
"""Two may be missed before a lease ends."""
IDLE_SECONDS = 1.0
OUTAGE_SECONDS = 5.0
RELEASE_SECONDS = 5.0
LOST = frozenset(("JOB_LEASE_LOST", "CREDENTIALS_INVALID"))
GONE = "RESOURCE_NOT_FOUND"
log = structlog.get_logger()


class WorkerHost:
    """Runs until cancelled. Any number may run side by side."""

    def __init__(
        self,
        jobs: Jobs,
        commands: Mapping[str, Command],
        *,
        concurrency: int,
        lease_seconds: int = LEASE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`commands`: what to run for which kind of job. `concurrency`: jobs at a time."""
        self._jobs, self._commands = jobs, commands
        self._concurrency, self._lease_seconds = concurrency, lease_seconds
        self._idle_seconds = idle_seconds
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work off what is due for ever. At the end, unfinished jobs are given back."""
        try:
            while True:
                if not await self._begin_some():
                    await self._wait()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _begin_some(self) -> int:
        free = self._concurrency - len(self._running)
        if not free or not self._commands:
            return 0
        try:
            found = await self._jobs.lease(
                tuple(self._commands), limit=free, lease_seconds=self._lease_seconds
            )
        except AnnalsError as error:
            log.warning("no jobs leased", cause=str(error))
            await pause(OUTAGE_SECONDS)
            return 0
        for job in found:
            task = asyncio.create_task(self._work(job))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return len(found)

    async def _wait(self) -> None:
        """Wait until a job ends, or for a while."""
        idle = asyncio.create_task(pause(self._idle_seconds))
        try:
            await asyncio.wait({idle, *self._running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            idle.cancel()

    async def _work(self, job: Job) -> None:
        with RUNNING.labels(job.kind).track_inprogress(), JOB_SECONDS.labels(job.kind).time():
            outcome = await self._outcome(job)
        JOBS.labels(job.kind, outcome).inc()

    async def _outcome(self, job: Job) -> str:
        working = asyncio.ensure_future(self._commands[job.kind](job.caller, job.conversation_id))
        beating = asyncio.create_task(self._beat(job))
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return "lost"
            return await self._settle(job, working)
        except asyncio.CancelledError:
            await self._give_back(job)
            raise
        finally:
            await _cancelled(working, beating)

    async def _settle(self, job: Job, working: asyncio.Future[None]) -> str:
        error = working.exception()
        reason = error.reason if isinstance(error, AnnalsError) else ""
        if reason in LOST:
            return "lost"
        try:
            if error is None or reason == GONE:
                # Of a conversation that was deleted meanwhile there is nothing left to do.
                await self._jobs.complete(job)
                return "done"
            log.error("job failed", kind=job.kind, conversation=job.conversation_id, exc_info=error)
            await self._jobs.fail(job, _told(error))
        except AnnalsError as refused:
            # Whoever has the job next finds it as it was: its results were fenced by the lease.
            log.warning("outcome not told", kind=job.kind, cause=str(refused))
            return "lost"
        return "failed"

    async def _beat(self, job: Job) -> None:
        """Keep the lease; return when it is lost."""
        while True:
            await pause(self._lease_seconds / HEARTBEATS_PER_LEASE)
            try:
                await self._jobs.heartbeat(job, lease_seconds=self._lease_seconds)
            except AnnalsError as error:
                log.warning("lease not renewed", kind=job.kind, cause=str(error))
                if error.reason in LOST:
                    return

    async def _give_back(self, job: Job) -> None:
        with suppress(AnnalsError, TimeoutError):
            await asyncio.wait_for(self._jobs.release(job), RELEASE_SECONDS)
        JOBS.labels(job.kind, "released").inc()


def _told(error: BaseException) -> str:
    return without_content(error) if isinstance(error, Exception) else type(error).__name__


async def _cancelled(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
