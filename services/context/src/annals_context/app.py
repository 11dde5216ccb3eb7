"""Wires storage's client to the use cases, starts and stops the service."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from annals.context.v1 import context_service_pb2_grpc, format_service_pb2_grpc
from annals_common.channels import open_aio_channel
from annals_common.code_version import code_version
from annals_common.composition import compose
from annals_common.errors import DependencyUnavailableError
from annals_common.health import probed
from annals_common.metrics import serving_metrics
from annals_common.server import RunningServer, ServiceSpec, start_server
from annals_context.clients.context_bodies import Bodies
from annals_context.clients.counters import count_in, counter_for
from annals_context.clients.shared_contexts import GrpcSharedContexts
from annals_context.clients.storage import GrpcStorage
from annals_context.clients.topics import GrpcTopics
from annals_context.commands.across import GetContextFromAllConversations
from annals_context.commands.cache_options import CacheOptions
from annals_context.commands.cached_preparing import CachedContexts
from annals_context.commands.drilling import DrillDown
from annals_context.commands.fallbacks import TolerantStorage, WithFallbacks
from annals_context.commands.preparing import PrepareContext, Prepared
from annals_context.commands.retrieving import Retrieval
from annals_context.commands.snippets import GetRelevantSnippets
from annals_context.commands.view_tokens import ViewTokens
from annals_context.commands.whole_events import SearchAndRetrieve
from annals_context.handlers.access import KnownCallers, authenticated
from annals_context.handlers.context import ContextHandler
from annals_context.handlers.formats import FormatHandler
from annals_context.handlers.retrieval import RetrievalHandler
from annals_context.handlers.topics import TopicHandler
from annals_context.handlers.views import ViewsHandler
from annals_context.settings import CacheSettings, ContextSettings

SERVICES = ("annals.context.v1.ContextService", "annals.context.v1.FormatService")
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
        server = self._settings.server
        health = await self._stack.enter_async_context(probed(server.health_address))
        credentials = self._settings.storage_tls.channel_credentials()
        channel = open_aio_channel(self._settings.storage_address, credentials)
        self._stack.push_async_callback(channel.close, None)
        self._stack.enter_context(serving_metrics(server.metrics_address))
        storage = GrpcStorage(channel)
        prepare = WithFallbacks(PrepareContext(TolerantStorage(storage), counter_for))
        contexts = _contexts(channel, prepare, self._settings.cache)
        self._stack.push_async_callback(contexts.close)
        parts = _context_parts(storage, prepare, contexts, self._settings)
        spec = _service_spec(channel, storage, parts)
        self._server = await start_server(spec, server, health)
        self._stack.push_async_callback(self._server.drain)

    async def stop(self) -> None:
        """Drain the calls, then let go of storage."""
        await self._stack.aclose()


def _contexts(
    channel: grpc.aio.Channel, prepare: WithFallbacks, settings: CacheSettings
) -> CachedContexts:
    return CachedContexts(
        prepare,
        GrpcSharedContexts(channel),
        Bodies(Prepared),
        count_in,
        CacheOptions(**dict(settings), code_version=code_version("annals_context")),
    )


def _service_spec(
    channel: grpc.aio.Channel, storage: GrpcStorage, parts: Iterable[object]
) -> ServiceSpec:
    topics = TopicHandler(GrpcTopics(channel))
    servicer = compose(context_service_pb2_grpc.ContextServiceServicer, topics, *parts)

    def register(server: grpc.aio.Server) -> None:
        context_service_pb2_grpc.add_ContextServiceServicer_to_server(servicer, server)
        format_service_pb2_grpc.add_FormatServiceServicer_to_server(
            FormatHandler(counter_for), server
        )

    async def check() -> None:
        await _check_storage(channel)

    return ServiceSpec(SERVICES, register, [authenticated(KnownCallers(storage))], check)


def _context_parts(
    storage: GrpcStorage,
    prepare: WithFallbacks,
    contexts: CachedContexts,
    settings: ContextSettings,
) -> Iterable[object]:
    """Return what ContextService is made of."""
    lifetime_seconds = settings.view_lifetime_seconds
    tokens = ViewTokens(settings.view_key_bytes, lifetime_seconds=lifetime_seconds)
    drill = DrillDown(storage, prepare, tokens)
    retrieval = Retrieval(storage, counter_for)
    yield ContextHandler(contexts, drill)
    yield ViewsHandler(drill)
    yield RetrievalHandler(
        GetRelevantSnippets(retrieval),
        SearchAndRetrieve(retrieval),
        GetContextFromAllConversations(retrieval),
    )


async def _check_storage(channel: grpc.aio.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=HEALTH_TIMEOUT_SECONDS)
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise DependencyUnavailableError("storage")
