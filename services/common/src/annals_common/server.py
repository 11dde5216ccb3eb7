"""Starts, watches and drains a gRPC server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
import structlog
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from annals_common.health import Check, Health, HealthWatch
from annals_common.interceptors.chain import ChainInterceptor, Middleware
from annals_common.interceptors.limits import limit_concurrency, require_time
from annals_common.interceptors.observe import observe
from annals_common.interceptors.unknown import UnknownMethodHandler
from annals_common.settings import MAX_RECEIVE_BYTES, ServerSettings

KEEPALIVE_MS = 30_000
log = structlog.get_logger()


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
        self, server: grpc.aio.Server, port: int, watch: HealthWatch, drain_seconds: float
    ) -> None:
        self.port = port
        self._server, self._watch, self._drain_seconds = server, watch, drain_seconds

    async def start(self) -> None:
        """Accept calls; report SERVING once the dependencies answer."""
        self._server.add_generic_rpc_handlers((UnknownMethodHandler(),))
        await self._watch.start()
        await self._server.start()

    async def drain(self) -> None:
        """Report NOT_SERVING, refuse new calls, let running ones finish in time."""
        await self._watch.stop()
        await self._server.stop(self._drain_seconds)


async def start_server(
    spec: ServiceSpec, settings: ServerSettings, health: Health | None = None
) -> RunningServer:
    """Bind, register and start. Raises RuntimeError when the address is taken.

    `health`: that of the process, when it answers elsewhere too; default: one of its own.
    """
    server = grpc.aio.server(
        interceptors=[_chain(spec, settings)], options=_server_options(settings)
    )
    spec.register(server)
    if settings.reflection:
        names = (*spec.names, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
        reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), server)
    health = health or await Health.starting()
    health.answer_on(server)
    watch = HealthWatch(health, spec.names, spec.check)
    running = RunningServer(server, _bind(server, settings), watch, settings.drain_seconds)
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


async def until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Run until the work ends, or cancel it on SIGTERM or SIGINT.

    Whoever is the first process of a container must ask for SIGTERM, also while it starts: the
    kernel does not stop such a process otherwise.
    """
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(wait_for_signal())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        working.result()
