"""Wires adapters to use cases, starts and stops them. The only module that knows them all."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import grpc.aio
import structlog

from annals.storage.v1 import (
    conversation_service_pb2_grpc,
    event_service_pb2_grpc,
    index_service_pb2_grpc,
    memory_service_pb2_grpc,
    provider_service_pb2_grpc,
    relationship_service_pb2_grpc,
    search_service_pb2_grpc,
    tenant_service_pb2_grpc,
    usage_service_pb2_grpc,
)
from annals_common.errors import DependencyUnavailableError
from annals_common.metrics import registered, serving_metrics
from annals_common.server import RunningServer, ServiceSpec, start_server
from annals_storage.app_lifecycle import lifecycle, open_cold_storage
from annals_storage.cold.warmed import warmed
from annals_storage.commands.authentication import Authenticate
from annals_storage.commands.changing import ChangeEvents
from annals_storage.commands.cold_storage import ColdStorage
from annals_storage.commands.end_users import IdentifyEndUser
from annals_storage.commands.exporting import ExportConversation
from annals_storage.commands.forking import ForkConversation
from annals_storage.commands.grouping import GroupCommit
from annals_storage.commands.growth import GrowthAlert
from annals_storage.commands.importing import ImportConversations
from annals_storage.commands.memories import SearchMemories
from annals_storage.commands.mirror_erasure import EngineErasure
from annals_storage.commands.notifying import NotifyingAppends
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.commands.search_log import SearchLog
from annals_storage.commands.searching import SearchEvents
from annals_storage.commands.signing_keys import CreateSigningKey, RevokeSigningKey
from annals_storage.commands.tenancy import RevokeApiKey, UpdateAgent
from annals_storage.commands.user_tokens import VerifyUserToken
from annals_storage.commands.wakes import Wakes
from annals_storage.commands.watch_sources import WatchStores
from annals_storage.commands.watching import WatchEvents
from annals_storage.domain.sealing import SecretBox
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.loading import load_embedder
from annals_storage.embedding.tokens import TiktokenCounter
from annals_storage.handlers.access import Access, authenticated
from annals_storage.handlers.agents import AgentHandler
from annals_storage.handlers.api_keys import ApiKeyHandler
from annals_storage.handlers.branches import BranchHandler
from annals_storage.handlers.composition import compose
from annals_storage.handlers.conversation_status import ConversationStatusHandler
from annals_storage.handlers.conversations import ConversationHandler
from annals_storage.handlers.event_changes import EventChangesHandler
from annals_storage.handlers.event_chunks import EventChunksHandler
from annals_storage.handlers.event_reads import EventReadHandler
from annals_storage.handlers.events import EventHandler
from annals_storage.handlers.forks import ForkHandler
from annals_storage.handlers.index import IndexHandler
from annals_storage.handlers.memories import MemoryHandler
from annals_storage.handlers.memory_input import EmbeddingSpace
from annals_storage.handlers.periods import PeriodHandler
from annals_storage.handlers.providers import ProviderHandler
from annals_storage.handlers.relationships import RelationshipHandler
from annals_storage.handlers.search import SearchHandler
from annals_storage.handlers.search_log import SearchLogHandler
from annals_storage.handlers.session_merges import SessionMergeHandler
from annals_storage.handlers.signing_keys import SigningKeyHandler
from annals_storage.handlers.tenants import TenantHandler
from annals_storage.handlers.threads import ThreadHandler
from annals_storage.handlers.transfer import TransferHandler
from annals_storage.handlers.usage import UsageHandler
from annals_storage.handlers.watch import WatchHandler
from annals_storage.indexer.mirror import Mirror
from annals_storage.indexer.worker import Indexer
from annals_storage.ports.vectors import VectorIndex
from annals_storage.postgres.appends import PostgresAppends
from annals_storage.postgres.branches import PostgresBranches
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.database import Database
from annals_storage.postgres.event_changes import PostgresEventChanges
from annals_storage.postgres.events import PostgresEvents
from annals_storage.postgres.forks import PostgresForks
from annals_storage.postgres.guard import check_database
from annals_storage.postgres.hits import PostgresHits
from annals_storage.postgres.memories import PostgresMemories
from annals_storage.postgres.notifications import PostgresNotifications
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.pool_metrics import PoolCollector
from annals_storage.postgres.provider_logs import PostgresProviderLogs
from annals_storage.postgres.relationships import PostgresRelationships
from annals_storage.postgres.search_log import PostgresSearchLog
from annals_storage.postgres.session_merges import PostgresSessionMerges
from annals_storage.postgres.signing_keys import PostgresSigningKeys
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.postgres.threads import PostgresThreads
from annals_storage.postgres.transfer import PostgresTransfer
from annals_storage.postgres.turns import PostgresTurns
from annals_storage.postgres.usage import PostgresUsage
from annals_storage.postgres.watch import PostgresWatch
from annals_storage.settings import StorageSettings
from annals_storage.vectors.edge import EdgeVectorIndex

SERVICES = tuple(
    f"annals.storage.v1.{name}Service"
    for name in (
        *("Conversation", "Erasure", "Event", "Index", "Lifecycle", "Memory", "Provider"),
        *("Relationship", "Search", "Tenant", "Usage"),
    )
)
LASTING_METHODS = frozenset({"WatchEvents"})
RETRY_SECONDS = 1.0
VECTORS_FOLDER = "vectors"
"""Where the embedded engine lives in the data directory."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Adapters:
    """Everything that reaches outside the process."""

    database: Database
    vectors: VectorIndex
    embedder: FastembedEmbedder
    sparse: Bm25Encoder
    cold: ColdStorage


@dataclass(frozen=True, slots=True)
class Live:
    """What connects commits with watches."""

    notifications: PostgresNotifications
    wakes: Wakes


class StorageApp:
    """One storage process."""

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._server: RunningServer | None = None
        self.indexing: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port the gRPC server listens on. Raises RuntimeError before start."""
        if self._server is None:
            raise RuntimeError("not started")
        return self._server.port

    async def start(self) -> None:
        """Connect, check, serve. Raises UnsafeRoleError, SchemaOutdatedError."""
        adapters = await open_adapters(self._settings, self._stack)
        self._stack.enter_context(registered(PoolCollector(adapters.database.pool)))
        outbox = PostgresOutbox(adapters.database)
        if self._settings.run_indexer:
            self.indexing = asyncio.create_task(_indexer(adapters, self._settings).run())
            self._stack.push_async_callback(_cancelled, self.indexing)
        alert = GrowthAlert(large_events=self._settings.large_conversation_events)
        live = await open_live(self._settings, self._stack)
        appends = NotifyingAppends(PostgresAppends(adapters.database), live.notifications)
        grouping = GroupCommit(appends, alert)
        self._stack.push_async_callback(grouping.drain)
        search_log = SearchLog(PostgresSearchLog(adapters.database))
        search_log.start()
        self._stack.push_async_callback(search_log.drain)
        self._stack.enter_context(serving_metrics(self._settings.server.metrics_address))
        spec = _service_spec(
            adapters, outbox, grouping, live, self._settings, search_log=search_log
        )
        self._server = await start_server(spec, self._settings.server)
        self._stack.push_async_callback(self._server.drain)
        # Watches never finish by themselves: they end before the other calls are waited for.
        self._stack.callback(live.wakes.close)

    async def stop(self) -> None:
        """Drain the calls, then let go of everything, last opened first."""
        await self._stack.aclose()


async def open_live(settings: StorageSettings, stack: AsyncExitStack) -> Live:
    """Listen for notifications until the stack closes."""
    wakes = Wakes()
    notifications = PostgresNotifications(settings.database_url.get_secret_value(), wakes.wake)
    stack.push_async_callback(notifications.close)
    listening = asyncio.create_task(notifications.listen())
    stack.push_async_callback(_cancelled, listening)
    return Live(notifications, wakes)


async def open_adapters(settings: StorageSettings, stack: AsyncExitStack) -> Adapters:
    """Open PostgreSQL, the model and the engine; close them with the stack."""
    database = Database(
        settings.database_url.get_secret_value(),
        max_connections=settings.database_max_connections,
        statement_timeout_ms=settings.statement_timeout_ms,
    )
    stack.push_async_callback(database.close)
    embedder, _ = await asyncio.gather(open_embedder(settings), _open_patiently(database))
    stack.callback(embedder.close)
    await check_database(database)
    vectors = _vectors(settings, embedder.dimensions)
    stack.push_async_callback(vectors.close)
    await _open_patiently(vectors)
    sparse = Bm25Encoder(language=settings.bm25_language)
    return Adapters(database, vectors, embedder, sparse, open_cold_storage(database, settings))


async def open_embedder(settings: StorageSettings) -> FastembedEmbedder:
    """Load the model of the settings."""
    return await load_embedder(
        settings.embedding_model,
        data_dir=settings.data_dir,
        threads=settings.embedding_threads,
        model_dir=settings.embedding_model_dir,
    )


async def _open_patiently(dependency: Database | VectorIndex) -> None:
    """Wait for a dependency that is not up yet: the order of start does not matter."""
    while True:
        try:
            return await dependency.open()
        except DependencyUnavailableError as error:
            log.warning("waiting", cause=error.message)
            await asyncio.sleep(RETRY_SECONDS)


def _vectors(settings: StorageSettings, dimensions: int) -> VectorIndex:
    if settings.vector_engine == "edge":
        return EdgeVectorIndex(settings.data_dir / VECTORS_FOLDER, dimensions=dimensions)
    # The client takes half a second to import, which the embedded engine need not wait for.
    from annals_storage.vectors.server import ServerVectorIndex, connect  # noqa: PLC0415

    api_key = settings.qdrant_api_key.get_secret_value() or None
    client = connect(settings.qdrant_url, api_key=api_key)
    return ServerVectorIndex(client, collection=settings.qdrant_collection, dimensions=dimensions)


def _indexer(adapters: Adapters, settings: StorageSettings) -> Indexer:
    outbox = PostgresOutbox(adapters.database)
    mirror = Mirror(
        outbox=warmed(outbox, adapters.cold),
        vectors=adapters.vectors,
        embedder=adapters.embedder,
        sparse=adapters.sparse,
    )
    owner = settings.indexer_name or socket.gethostname()
    return Indexer(outbox=outbox, mirror=mirror, owner=owner)


def _service_spec(
    adapters: Adapters,
    outbox: PostgresOutbox,
    grouping: GroupCommit,
    live: Live,
    settings: StorageSettings,
    *,
    search_log: SearchLog,
) -> ServiceSpec:
    tenants = PostgresTenants(adapters.database)
    signing_keys = PostgresSigningKeys(adapters.database)
    secret_box = SecretBox(settings.secrets_key_bytes) if settings.secrets_key_bytes else None
    verify = VerifyUserToken(signing_keys, secret_box)
    authenticate = Authenticate(
        tenants, IdentifyEndUser(verify), admin_key_hash=settings.admin_key_hash
    )
    events = warmed(PostgresEvents(adapters.database), adapters.cold)
    changes = ChangeEvents(
        turns=warmed(PostgresTurns(adapters.database), adapters.cold),
        changes=warmed(PostgresEventChanges(adapters.database), adapters.cold),
        cold_storage=adapters.cold,
        notifier=live.notifications,
    )
    conversations = PostgresConversations(adapters.database)
    access = Access(conversations)
    watch = WatchEvents(
        WatchStores(
            conversations, events, tenants, warmed(PostgresWatch(adapters.database), adapters.cold)
        ),
        live.wakes,
        max_watches=settings.max_watches,
        poll_seconds=settings.watch_poll_seconds,
    )
    transfer = _transfer(adapters, live)
    embeddings = QueryEmbeddings(adapters.embedder)
    search = SearchEvents(
        embeddings=embeddings,
        sparse=adapters.sparse,
        vectors=adapters.vectors,
        hits=warmed(PostgresHits(adapters.database), adapters.cold),
        outbox=outbox,
    )
    threads = warmed(PostgresThreads(adapters.database), adapters.cold)
    fork = ForkConversation(PostgresForks(adapters.database), adapters.cold, live.notifications)
    memories = PostgresMemories(adapters.database)
    search_memories = SearchMemories(
        embeddings=embeddings, vectors=adapters.vectors, memories=memories, outbox=outbox
    )
    space = EmbeddingSpace(adapters.embedder.model, adapters.embedder.dimensions)

    def register(server: grpc.aio.Server) -> None:
        tenant_service_pb2_grpc.add_TenantServiceServicer_to_server(
            compose(
                tenant_service_pb2_grpc.TenantServiceServicer,
                TenantHandler(tenants),
                AgentHandler(tenants, UpdateAgent(tenants, authenticate)),
                ApiKeyHandler(tenants, RevokeApiKey(tenants, authenticate)),
                SigningKeyHandler(
                    signing_keys,
                    CreateSigningKey(signing_keys, secret_box),
                    RevokeSigningKey(signing_keys, verify),
                ),
            ),
            server,
        )
        conversation_service_pb2_grpc.add_ConversationServiceServicer_to_server(
            compose(
                conversation_service_pb2_grpc.ConversationServiceServicer,
                ConversationHandler(conversations, access),
                ConversationStatusHandler(conversations, access),
                SessionMergeHandler(PostgresSessionMerges(adapters.database)),
                ForkHandler(fork),
                transfer,
            ),
            server,
        )
        event_service_pb2_grpc.add_EventServiceServicer_to_server(
            compose(
                event_service_pb2_grpc.EventServiceServicer,
                EventHandler(grouping=grouping, counter=TiktokenCounter(), access=access),
                EventReadHandler(events, access),
                PeriodHandler(events, access),
                EventChunksHandler(events, TiktokenCounter()),
                ThreadHandler(threads),
                EventChangesHandler(changes=changes, counter=TiktokenCounter(), access=access),
                BranchHandler(PostgresBranches(adapters.database)),
                WatchHandler(watch, access),
            ),
            server,
        )
        relationship_service_pb2_grpc.add_RelationshipServiceServicer_to_server(
            RelationshipHandler(PostgresRelationships(adapters.database)), server
        )
        usage_service_pb2_grpc.add_UsageServiceServicer_to_server(
            UsageHandler(
                PostgresUsage(adapters.database), large_events=settings.large_conversation_events
            ),
            server,
        )
        provider_service_pb2_grpc.add_ProviderServiceServicer_to_server(
            ProviderHandler(PostgresProviderLogs(adapters.database)), server
        )
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(
            MemoryHandler(memories, search=search_memories, search_log=search_log, space=space),
            server,
        )
        search_service_pb2_grpc.add_SearchServiceServicer_to_server(
            compose(
                search_service_pb2_grpc.SearchServiceServicer,
                SearchHandler(search, search_log),
                SearchLogHandler(PostgresSearchLog(adapters.database)),
            ),
            server,
        )
        engine = EngineErasure(adapters.vectors)
        lifecycle(
            adapters.database, engine, adapters.cold, forget_key=authenticate.forget_key
        ).register(server, engine)
        index_service_pb2_grpc.add_IndexServiceServicer_to_server(
            IndexHandler(outbox=outbox, vectors=adapters.vectors, embedder=adapters.embedder),
            server,
        )

    async def check() -> None:
        await adapters.database.ping()
        await adapters.vectors.ping()

    return ServiceSpec(SERVICES, register, [authenticated(authenticate)], check, LASTING_METHODS)


def _transfer(adapters: Adapters, live: Live) -> TransferHandler:
    store = PostgresTransfer(adapters.database)
    return TransferHandler(
        ExportConversation(store, adapters.cold),
        ImportConversations(
            store,
            adapters.cold,
            live.notifications,
            embedding_dimensions=adapters.embedder.dimensions,
        ),
    )


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def run_indexer(settings: StorageSettings) -> None:
    """Index until cancelled, without serving: for the Qdrant server adapter."""
    async with AsyncExitStack() as stack:
        adapters = await open_adapters(settings, stack)
        stack.enter_context(serving_metrics(settings.server.metrics_address))
        await _indexer(adapters, settings).run()
