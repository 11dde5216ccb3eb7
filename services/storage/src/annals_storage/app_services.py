"""Wires the gRPC services over the adapters of one process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import grpc.aio

from annals.storage.v1 import (
    conversation_service_pb2_grpc,
    memory_service_pb2_grpc,
    provider_service_pb2_grpc,
    relationship_service_pb2_grpc,
    search_service_pb2_grpc,
    tenant_service_pb2_grpc,
    usage_service_pb2_grpc,
)
from annals_common.composition import compose
from annals_common.server import ServiceSpec
from annals_storage.app_adapters import Shared
from annals_storage.app_background import add_background, worker_credentials
from annals_storage.app_context_cache import add_context_cache
from annals_storage.app_events import add_events
from annals_storage.app_lifecycle import lifecycle
from annals_storage.app_summaries import add_summaries
from annals_storage.app_transfer import transfer_handler
from annals_storage.commands.authentication import Authenticate
from annals_storage.commands.diversifying import Diversify
from annals_storage.commands.end_users import IdentifyEndUser
from annals_storage.commands.engine_first import EngineBreaker, EngineFirst
from annals_storage.commands.erasing_everywhere import ErasureEverywhere
from annals_storage.commands.forking import ForkConversation
from annals_storage.commands.generations import Generations, OfServing, OpenGeneration
from annals_storage.commands.memories import SearchMemories
from annals_storage.commands.ranking import RankEvents
from annals_storage.commands.reading_back import ReadBack
from annals_storage.commands.search_parameters import TenantParameters
from annals_storage.commands.searching import SearchEvents
from annals_storage.commands.signing_keys import CreateSigningKey, RevokeSigningKey
from annals_storage.commands.tenancy import RevokeApiKey, UpdateAgent
from annals_storage.commands.user_tokens import VerifyUserToken
from annals_storage.commands.word_search import WordSearch
from annals_storage.domain.sealing import SecretBox
from annals_storage.handlers.access import Access, authenticated
from annals_storage.handlers.agents import AgentHandler
from annals_storage.handlers.api_keys import ApiKeyHandler
from annals_storage.handlers.conversation_status import ConversationStatusHandler
from annals_storage.handlers.conversations import ConversationHandler
from annals_storage.handlers.forks import ForkHandler
from annals_storage.handlers.memories import MemoryHandler
from annals_storage.handlers.memory_input import EmbeddingSpace
from annals_storage.handlers.providers import ProviderHandler
from annals_storage.handlers.relationships import RelationshipHandler
from annals_storage.handlers.search import SearchHandler
from annals_storage.handlers.search_log import SearchLogHandler
from annals_storage.handlers.search_parameters import SearchParametersHandler
from annals_storage.handlers.session_merges import SessionMergeHandler
from annals_storage.handlers.signing_keys import SigningKeyHandler
from annals_storage.handlers.tenants import TenantHandler
from annals_storage.handlers.usage import UsageHandler
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.forks import PostgresForks
from annals_storage.postgres.hits import PostgresHits
from annals_storage.postgres.lexical import PostgresLexical
from annals_storage.postgres.memories import PostgresMemories
from annals_storage.postgres.provider_logs import PostgresProviderLogs
from annals_storage.postgres.relationships import PostgresRelationships
from annals_storage.postgres.rescoring import PostgresRescoring
from annals_storage.postgres.search_log import PostgresSearchLog
from annals_storage.postgres.search_parameters import PostgresSearchParameters
from annals_storage.postgres.session_merges import PostgresSessionMerges
from annals_storage.postgres.signing_keys import PostgresSigningKeys
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.postgres.usage import PostgresUsage

SERVICES = tuple(
    f"annals.storage.v1.{name}Service"
    for name in (
        *(
            "ContextCache",
            "Conversation",
            "Erasure",
            "Event",
            "Index",
            "Job",
            "Lifecycle",
            "Memory",
        ),
        *("Provider", "Relationship", "Search", "Summary", "Tenant", "Topic", "Usage"),
    )
)
LASTING_METHODS = frozenset({"WatchEvents"})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, and by which keys."""

    tenants: PostgresTenants
    signing_keys: PostgresSigningKeys
    secret_box: SecretBox | None
    verify: VerifyUserToken
    authenticate: Authenticate


@dataclass(frozen=True, slots=True)
class Offline:
    """How searches do without the vector engine."""

    engine_first: EngineFirst
    lexical: PostgresLexical
    rescoring: PostgresRescoring
    sparse: SparseEncoder

    def words(self, serving: OpenGeneration) -> WordSearch:
        """Return the search by words among the chunks of a generation."""
        model = serving.generation.model.name
        return WordSearch(self.lexical, self.rescoring, sparse=self.sparse, model=model)


def service_spec(shared: Shared) -> ServiceSpec:
    """Return what the process serves."""
    identity = _identity(shared)
    parameters = TenantParameters(PostgresSearchParameters(shared.database))

    def register(server: grpc.aio.Server) -> None:
        _add_tenants(server, identity, parameters)
        access = Access(PostgresConversations(shared.database))
        _add_conversations(server, shared, access)
        add_events(server, shared, access)
        _add_records(server, shared)
        add_summaries(server, shared, access)
        add_context_cache(server, shared)
        _add_searches(server, shared, parameters)
        add_background(server, shared)
        _add_lifecycle(server, shared, identity.authenticate)

    middlewares = [authenticated(identity.authenticate)]
    # Not the engine: without it writes go on, and searches do with PostgreSQL alone.
    return ServiceSpec(SERVICES, register, middlewares, shared.database.ping, LASTING_METHODS)


def _identity(shared: Shared) -> Identity:
    settings = shared.settings
    tenants = PostgresTenants(shared.database)
    signing_keys = PostgresSigningKeys(shared.database)
    secret_box = SecretBox(settings.secrets_key_bytes) if settings.secrets_key_bytes else None
    verify = VerifyUserToken(signing_keys, secret_box)
    authenticate = Authenticate(
        tenants,
        IdentifyEndUser(verify),
        worker_credentials(shared),
        admin_key_hash=settings.admin_key_hash,
    )
    return Identity(tenants, signing_keys, secret_box, verify, authenticate)


def _add_tenants(server: grpc.aio.Server, identity: Identity, parameters: TenantParameters) -> None:
    tenants, signing_keys = identity.tenants, identity.signing_keys
    tenant_service_pb2_grpc.add_TenantServiceServicer_to_server(
        compose(
            tenant_service_pb2_grpc.TenantServiceServicer,
            TenantHandler(tenants),
            AgentHandler(tenants, UpdateAgent(tenants, identity.authenticate)),
            ApiKeyHandler(tenants, RevokeApiKey(tenants, identity.authenticate)),
            SigningKeyHandler(
                signing_keys,
                CreateSigningKey(signing_keys, identity.secret_box),
                RevokeSigningKey(signing_keys, identity.verify),
            ),
            SearchParametersHandler(parameters),
        ),
        server,
    )


def _add_conversations(server: grpc.aio.Server, shared: Shared, access: Access) -> None:
    conversations = PostgresConversations(shared.database)
    fork = ForkConversation(
        PostgresForks(shared.database), shared.adapters.cold, shared.live.notifications
    )
    conversation_service_pb2_grpc.add_ConversationServiceServicer_to_server(
        compose(
            conversation_service_pb2_grpc.ConversationServiceServicer,
            ConversationHandler(conversations, access),
            ConversationStatusHandler(conversations, access),
            SessionMergeHandler(PostgresSessionMerges(shared.database)),
            ForkHandler(fork),
            transfer_handler(shared),
        ),
        server,
    )


def _add_records(server: grpc.aio.Server, shared: Shared) -> None:
    large_events = shared.settings.large_conversation_events
    relationship_service_pb2_grpc.add_RelationshipServiceServicer_to_server(
        RelationshipHandler(PostgresRelationships(shared.database)), server
    )
    usage_service_pb2_grpc.add_UsageServiceServicer_to_server(
        UsageHandler(PostgresUsage(shared.database), large_events=large_events), server
    )
    provider_service_pb2_grpc.add_ProviderServiceServicer_to_server(
        ProviderHandler(PostgresProviderLogs(shared.database)), server
    )


def _add_searches(server: grpc.aio.Server, shared: Shared, parameters: TenantParameters) -> None:
    generations, offline = shared.adapters.generations, _offline(shared)
    memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(_memories(shared, offline), server)
    search_service_pb2_grpc.add_SearchServiceServicer_to_server(
        compose(
            search_service_pb2_grpc.SearchServiceServicer,
            SearchHandler(
                OfServing(generations, partial(_search, shared, parameters, offline)),
                shared.search_log,
                space=partial(_space, generations),
            ),
            SearchLogHandler(PostgresSearchLog(shared.database)),
        ),
        server,
    )


def _offline(shared: Shared) -> Offline:
    timeout_seconds = shared.settings.engine_timeout_ms / 1000
    return Offline(
        engine_first=EngineFirst(EngineBreaker(), timeout_seconds=timeout_seconds),
        lexical=PostgresLexical(shared.database),
        rescoring=PostgresRescoring(shared.database),
        sparse=shared.adapters.sparse,
    )


def _memories(shared: Shared, offline: Offline) -> MemoryHandler:
    generations, memories = shared.adapters.generations, PostgresMemories(shared.database)

    def search(serving: OpenGeneration) -> SearchMemories:
        return SearchMemories(
            embeddings=serving.embeddings,
            vectors=serving.vectors,
            memories=memories,
            outbox=shared.outbox,
            engine_first=offline.engine_first,
            words=offline.words(serving),
        )

    return MemoryHandler(
        memories,
        search=OfServing(generations, search),
        search_log=shared.search_log,
        space=partial(_space, generations),
    )


def _space(generations: Generations) -> EmbeddingSpace:
    model = generations.serving.generation.model
    return EmbeddingSpace(model.name, model.dimensions)


def _search(
    shared: Shared, parameters: TenantParameters, offline: Offline, serving: OpenGeneration
) -> SearchEvents:
    as_stored = PostgresHits(shared.database, serving.generation.model.name)
    rank = RankEvents(
        embeddings=serving.embeddings,
        sparse=shared.adapters.sparse,
        vectors=serving.vectors,
        rescoring=offline.rescoring,
        parameters=parameters,
        engine_first=offline.engine_first,
        words=offline.words(serving),
    )
    return SearchEvents(
        rank=rank,
        diversify=Diversify(offline.rescoring),
        read_back=ReadBack(shared.warm(as_stored), as_stored),
        views=as_stored,
        outbox=shared.outbox,
    )


def _add_lifecycle(server: grpc.aio.Server, shared: Shared, authenticate: Authenticate) -> None:
    adapters = shared.adapters
    engine = ErasureEverywhere(adapters.generations)
    lifecycle(
        adapters.database, engine, adapters.cold, forget_key=authenticate.forget_key
    ).register(server, engine)
