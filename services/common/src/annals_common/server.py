"""Starts, watches and drains a gRPC server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from annals_common.interceptors.chain import ChainInterceptor, Middleware
from annals_common.interceptors.limits import limit_concurrency, require_time
from annals_common.interceptors.observe import observe
from annals_common.interceptors.unknown import UnknownMethodHandler
from annals_common.settings import MAX_RECEIVE_BYTES, ServerSettings

HEALTH_INTERVAL_SECONDS = 1.0
HEALTH_TIMEOUT_SECONDS = 2.0
KEEPALIVE_MS = 30_000
log = structlog.get_logger()

Check = Callable[[], Awaitable[None]]
"""Answers when a dependency does, raises when it does not."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What a process serves. `lasting`: methods whose calls do not count as calls at a time."""

    names: tuple[str, ...]
    register: Callable[[grpc.aio.Server], None]
    middlewares: Sequence[Middleware]
    check: Check
    lasting: frozenset[str] = frozenset()


class RunningServer:
    """A started server: its port, its health, its end."""

    def __init__(
        self, server: grpc.aio.Server, port: int, spec: ServiceSpec, drain_seconds: float
    ) -> None:
        self.port = port
        self._server, self._spec, self._drain_seconds = server, spec, drain_seconds
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self._serving: bool | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Accept calls; report SERVING once the dependencies answer."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._server.add_generic_rpc_handlers((UnknownMethodHandler(),))
        await self._check_once()
        await self._server.start()
        self._watch = asyncio.create_task(self._watch_health())

    async def drain(self) -> None:
        """Report NOT_SERVING, refuse new calls, let running ones finish in time."""
        if self._watch is not None:
            self._watch.cancel()
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self._drain_seconds)

    async def _watch_health(self) -> None:
        while True:
            await asyncio.sleep(HEALTH_INTERVAL_SECONDS)
            await self._check_once()

    async def _check_once(self) -> None:
        try:
            await asyncio.wait_for(self._spec.check(), HEALTH_TIMEOUT_SECONDS)
        except Exception as error:  # noqa: BLE001 - any failure means not serving
            await self._report(serving=False, cause=repr(error))
        else:
            await self._report(serving=True, cause="")

    async def _report(self, *, serving: bool, cause: str) -> None:
        if serving == self._serving:
            return
        self._serving = serving
        log.info("health", serving=serving, cause=cause)
        status = health_pb2.HealthCheckResponse
        code = status.SERVING if serving else status.NOT_SERVING
        for name in ("", *self._spec.names):
            await self._health.set(name, code)


async def start_server(spec: ServiceSpec, settings: ServerSettings) -> RunningServer:
    """Bind, register and start. Raises RuntimeError when the address is taken."""
    server = grpc.aio.server(
        interceptors=[_chain(spec, settings)], options=_server_options(settings)
    )
    spec.register(server)
    if settings.reflection:
        names = (*spec.names, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
        reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), server)
    running = RunningServer(server, _bind(server, settings), spec, settings.drain_seconds)
    await running.start()
    log.info("serving", port=running.port, services=spec.names)
    return running


def _chain(spec: ServiceSpec, settings: ServerSettings) -> ChainInterceptor:
    concurrency = limit_concurrency(settings.max_concurrent_calls, lasting=spec.lasting)
    limits = (concurrency, require_time)
    return ChainInterceptor(observe, (*limits, *spec.middlewares))


def _bind(server: grpc.aio.Server, settings: ServerSettings) -> int:
    credentials = settings.tls.server_credentials()
    if credentials is None:
        return server.add_insecure_port(settings.address)
    return server.add_secure_port(settings.address, credentials)


def _server_options(settings: ServerSettings) -> list[tuple[str, int]]:
    options = [
        ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
        ("grpc.max_send_message_length", MAX_RECEIVE_BYTES),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MS // 3),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.so_reuseport", 0),
    ]
    if settings.max_connection_age_seconds:
        options.append(("grpc.max_connection_age_ms", settings.max_connection_age_seconds * 1000))
    return options


async def wait_for_signal() -> None:
    """Return on SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
