"""Starts and stops the service; the `app_*` modules wire storage's client to the use cases."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from annals.context.v1 import (
    context_service_pb2_grpc,
    format_service_pb2_grpc,
    summarization_service_pb2_grpc,
)
from annals_common.channels import open_aio_channel
from annals_common.composition import compose
from annals_common.errors import DependencyUnavailableError
from annals_common.health import probed
from annals_common.metrics import serving_metrics
from annals_common.server import RunningServer, ServiceSpec, start_server
from annals_context.app_contexts import context_handlers
from annals_context.app_summaries import SummaryUseCases, summary_use_cases
from annals_context.clients.counters import counter_for
from annals_context.clients.storage import GrpcStorage
from annals_context.clients.topics import GrpcTopics
from annals_context.handlers.access import KnownCallers, authenticated
from annals_context.handlers.formats import FormatHandler
from annals_context.handlers.summaries import ContextSummaryHandler, SummarizationHandler
from annals_context.handlers.topics import TopicHandler
from annals_context.settings import ContextSettings

SERVICES = tuple(
    f"annals.context.v1.{name}Service" for name in ("Context", "Format", "Summarization")
)
HEALTH_TIMEOUT_SECONDS = 1.5


class ContextApp:
    """One context process."""

    def __init__(self, settings: ContextSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._server: RunningServer | None = None

    @property
    def port(self) -> int:
        """The port the gRPC server listens on. Raises RuntimeError before start."""
        if self._server is None:
            raise RuntimeError("not started")
        return self._server.port

    async def start(self) -> None:
        """Serve; storage may come later, until then health says NOT_SERVING."""
        counter_for("")
        settings = self._settings
        health = await self._stack.enter_async_context(probed(settings.server.health_address))
        channel = open_aio_channel(
            settings.storage_address, settings.storage_tls.channel_credentials()
        )
        self._stack.push_async_callback(channel.close, None)
        self._stack.enter_context(serving_metrics(settings.server.metrics_address))
        storage = GrpcStorage(channel)
        summaries = summary_use_cases(channel, settings.summaries)
        handlers = [
            *context_handlers(channel, storage, settings, self._stack),
            ContextSummaryHandler(summaries.get_context_summary),
            TopicHandler(GrpcTopics(channel)),
        ]
        spec = _service_spec(channel, storage, handlers, summaries)
        self._server = await start_server(spec, settings.server, health)
        self._stack.push_async_callback(self._server.drain)

    async def stop(self) -> None:
        """Drain the calls, then let go of storage."""
        await self._stack.aclose()


def _service_spec(
    channel: grpc.aio.Channel,
    storage: GrpcStorage,
    handlers: Iterable[object],
    summaries: SummaryUseCases,
) -> ServiceSpec:
    servicer = compose(context_service_pb2_grpc.ContextServiceServicer, *handlers)

    def register(server: grpc.aio.Server) -> None:
        context_service_pb2_grpc.add_ContextServiceServicer_to_server(servicer, server)
        format_service_pb2_grpc.add_FormatServiceServicer_to_server(
            FormatHandler(counter_for), server
        )
        summarization_service_pb2_grpc.add_SummarizationServiceServicer_to_server(
            SummarizationHandler(summaries.summarize), server
        )

    async def check() -> None:
        await _check_storage(channel)

    return ServiceSpec(SERVICES, register, [authenticated(KnownCallers(storage))], check)


async def _check_storage(channel: grpc.aio.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=HEALTH_TIMEOUT_SECONDS)
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise DependencyUnavailableError("storage")
