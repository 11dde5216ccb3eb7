"""What a process says of itself by `grpc.health.v1`: that it is alive, and what it serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import grpc.aio
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from annals_common.cancellation import pause

LIVENESS = "liveness"
"""Asked under this name, a process that runs answers SERVING, whatever its dependencies do."""

INTERVAL_SECONDS = 1.0
TIMEOUT_SECONDS = 2.0
log = structlog.get_logger()

Check = Callable[[], Awaitable[None]]
"""Answers when a dependency does, raises when it does not."""


class Health:
    """The answers of one process; any number of its servers give them."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()  # type: ignore[attr-defined]

    @classmethod
    async def starting(cls) -> Health:
        """Return the health of a process that lives but does not serve yet."""
        starting = cls()
        await starting.report((LIVENESS,), serving=True)
        await starting.report(("",), serving=False)
        return starting

    def answer_on(self, server: grpc.aio.Server) -> None:
        """Have the server answer health checks."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def report(self, names: Sequence[str], *, serving: bool) -> None:
        """Answer so from now on when asked for one of the names; "" stands for the whole."""
        status = health_pb2.HealthCheckResponse
        code = status.SERVING if serving else status.NOT_SERVING
        for name in names:
            await self._servicer.set(name, code)


class HealthWatch:
    """Keeps the health of some services true by asking their dependencies every second."""

    def __init__(self, health_of: Health, names: Sequence[str], check: Check) -> None:
        self._health, self._names, self._check = health_of, ("", *names), check
        self._serving: bool | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask once, then from time to time."""
        await self._look()
        self._task = asyncio.create_task(self._go_on())

    async def stop(self) -> None:
        """Report NOT_SERVING from now on; the process is still alive."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._report(serving=False, cause="stopping")

    async def _go_on(self) -> None:
        while True:
            await pause(INTERVAL_SECONDS)
            await self._look()

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._check()
        except Exception as error:  # noqa: BLE001 - any failure means not serving
            await self._report(serving=False, cause=repr(error))
        else:
            await self._report(serving=True, cause="")

    async def _report(self, *, serving: bool, cause: str) -> None:
        if serving == self._serving:
            return
        self._serving = serving
        log.info("health", serving=serving, cause=cause)
        await self._health.report(self._names, serving=serving)


@asynccontextmanager
async def probed(address: str) -> AsyncIterator[Health]:
    """Yield the health of this process, and answer probes at host:port. Empty: no server.

    The server speaks in clear and of health alone, because probes of Kubernetes know no TLS. It
    answers before the dependencies do: a process that waits for them is alive. Raises
    RuntimeError when the address is taken.
    """
    health_of = await Health.starting()
    if not address:
        yield health_of
        return
    server = grpc.aio.server()
    health_of.answer_on(server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield health_of
    finally:
        await server.stop(None)
