"""A process that is kept running."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from annals_local.errors import StartError
from annals_local.files import last_lines
from annals_local.processes import ProcessId

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0
STABLE_S = 10.0
"""A process that ran this long starts anew without delay."""
PROBE_SECONDS = 0.03
KILL_AFTER_S = 25.0
SHOWN_LINES = 15
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run: a module with a function `main`, and its arguments.

    `settings` are environment variables, asked for when the module is to begin.
    """

    name: str
    arguments: tuple[str, ...]
    log_path: Path
    settings: Callable[[], Mapping[str, str]]


class Child:
    """One process after the other, of the same kind."""

    def __init__(self, spec: ChildSpec, on_start: Callable[[], None]) -> None:
        self.name = spec.name
        self.current: ProcessId | None = None
        self._spec, self._on_start = spec, on_start
        self._process: Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Start the process; its module waits to begin. Its input breaks when this one dies."""
        command = (sys.executable, "-m", "annals_local.guarded", *self._spec.arguments)
        with self._spec.log_path.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                # Ctrl-C reaches the supervisor alone, which then stops the others in order.
                start_new_session=True,
            )
        self.current = ProcessId.of(self._process.pid)
        self._on_start()

    async def begin(self) -> None:
        """Let the module begin."""
        settings = json.dumps(dict(self._spec.settings()))
        pipe = self._running().stdin
        if pipe is None:
            raise RuntimeError(f"{self.name} has no input")
        with suppress(ConnectionError):
            pipe.write(f"{settings}\n".encode())
            await pipe.drain()

    async def ready(self, probe: Callable[[], Awaitable[bool]], *, timeout_s: float) -> None:
        """Wait for the first process to be ready. Raises StartError with its last log lines."""
        deadline_s = time.monotonic() + timeout_s
        while not await probe():
            if self._running().returncode is not None:
                raise self._failure(f"ended with status {self._running().returncode}")
            if time.monotonic() > deadline_s:
                raise self._failure(f"was not ready within {timeout_s:.0f} s")
            await asyncio.sleep(PROBE_SECONDS)

    def keep(self) -> None:
        """From now on, start the process anew whenever it ends."""
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Ask it to drain, wait, kill what does not end."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
        if self._process is not None and self._process.returncode is None:
            await self._end(self._process)

    async def _keep(self) -> None:
        delay_s = BACKOFF_FIRST_S
        while True:
            began_s = time.monotonic()
            status = await self._running().wait()
            if time.monotonic() - began_s >= STABLE_S:
                delay_s = BACKOFF_FIRST_S
            log.warning("process ended", name=self.name, status=status, restart_in_s=delay_s)
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, BACKOFF_MAX_S)
            await self.load()
            await self.begin()
            log.info("process started", name=self.name, pid=self._running().pid)

    async def _end(self, process: Process) -> None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), KILL_AFTER_S)
        except TimeoutError:
            log.warning("process does not end; killing it", name=self.name)
            process.kill()
            await process.wait()

    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"{self.name} was never loaded")
        return self._process

    def _failure(self, what: str) -> StartError:
        path = self._spec.log_path
        return StartError(f"{self.name} {what}. End of {path}:\n{last_lines(path, SHOWN_LINES)}")
