"""The generated stubs of both services, together."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from grpc_health.v1.health_pb2_grpc import HealthStub

from annals.context.v1.context_service_pb2_grpc import ContextServiceStub
from annals.context.v1.format_service_pb2_grpc import FormatServiceStub
from annals.context.v1.summarization_service_pb2_grpc import SummarizationServiceStub
from annals.storage.v1.conversation_service_pb2_grpc import ConversationServiceStub
from annals.storage.v1.erasure_service_pb2_grpc import ErasureServiceStub
from annals.storage.v1.event_service_pb2_grpc import EventServiceStub
from annals.storage.v1.index_service_pb2_grpc import IndexServiceStub
from annals.storage.v1.job_service_pb2_grpc import JobServiceStub
from annals.storage.v1.lifecycle_service_pb2_grpc import LifecycleServiceStub
from annals.storage.v1.memory_service_pb2_grpc import MemoryServiceStub
from annals.storage.v1.provider_service_pb2_grpc import ProviderServiceStub
from annals.storage.v1.relationship_service_pb2_grpc import RelationshipServiceStub
from annals.storage.v1.search_service_pb2_grpc import SearchServiceStub
from annals.storage.v1.summary_service_pb2_grpc import SummaryServiceStub
from annals.storage.v1.tenant_service_pb2_grpc import TenantServiceStub
from annals.storage.v1.usage_service_pb2_grpc import UsageServiceStub

AnyChannel = grpc.Channel | grpc.aio.Channel


class Stubs:
    """Stubs over a pair of channels. Over aio channels their methods return awaitables."""

    def __init__(self, storage: AnyChannel, context: AnyChannel) -> None:
        self.tenants = TenantServiceStub(storage)
        self.conversations = ConversationServiceStub(storage)
        self.events = EventServiceStub(storage)
        self.memories = MemoryServiceStub(storage)
        self.relationships = RelationshipServiceStub(storage)
        self.usage = UsageServiceStub(storage)
        self.providers = ProviderServiceStub(storage)
        self.erasure = ErasureServiceStub(storage)
        self.lifecycle = LifecycleServiceStub(storage)
        self.search = SearchServiceStub(storage)
        self.summaries = SummaryServiceStub(storage)
        self.index = IndexServiceStub(storage)
        self.jobs = JobServiceStub(storage)
        self.context = ContextServiceStub(context)
        self.formats = FormatServiceStub(context)
        self.summarization = SummarizationServiceStub(context)
        self.storage_health: Any = HealthStub(storage)
        self.context_health: Any = HealthStub(context)
