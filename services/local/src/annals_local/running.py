"""One run of the supervisor, from the lock to the last process stopped."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable

import psutil
import structlog

from annals_common.server import wait_for_signal
from annals_local.errors import LocalError
from annals_local.journal import open_journal
from annals_local.lock import exclusive
from annals_local.paths import LocalPaths
from annals_local.ports import Ports
from annals_local.processes import end_leftovers
from annals_local.supervisor import Serving, Supervisor

Use = Callable[[Serving], Awaitable[None]]
log = structlog.get_logger()


def hold(paths: LocalPaths, ports: Ports, use: Use) -> None:
    """Start everything, `use` it, stop everything; a signal ends it early. Raises LocalError."""
    with exclusive(paths.lock):
        paths.create()
        open_journal(paths.log("local"))
        asyncio.run(_hold(Supervisor(paths, ports), use))


def clear(paths: LocalPaths) -> None:
    """Remove an installation. Raises LocalError when the directory is something else's."""
    if not paths.root.exists():
        return
    if not paths.identity.exists() and any(paths.root.iterdir()):
        raise LocalError(f"{paths.root} is no installation of Annals; it is left alone")
    with exclusive(paths.lock):
        end_leftovers(paths.processes)
        shutil.rmtree(paths.root)


async def _hold(supervisor: Supervisor, use: Use) -> None:
    stopped = asyncio.create_task(wait_for_signal())
    work = asyncio.create_task(_start_and_use(supervisor, use))
    try:
        await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        await _cancelled(work, stopped)
        await supervisor.stop()


async def _start_and_use(supervisor: Supervisor, use: Use) -> None:
    serving = await supervisor.start()
    log.info("serving", after_s=round(time.time() - psutil.Process().create_time(), 1))
    await use(serving)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
