"""Where topics are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from annals_common.principal import JobLease
from annals_storage.domain.events import Event
from annals_storage.domain.topics import (
    Assignment,
    Clustering,
    EventEmbedding,
    Topic,
    TopicEventsQuery,
    TopicPeriod,
)


class TopicStore(Protocol):
    """Topics as readers see them. `branch`: None for the current one."""

    async def list(
        self, tenant_id: UUID, conversation_id: UUID, *, branch: int | None, limit: int
    ) -> Sequence[Topic]:
        """Return the largest topics."""

    async def get(self, tenant_id: UUID, topic_id: UUID) -> Topic | None:
        """Return a topic on the current branch."""

    async def list_events(self, tenant_id: UUID, query: TopicEventsQuery) -> Sequence[Event]:
        """Return a page of a topic's events."""

    async def list_periods(
        self, tenant_id: UUID, conversation_id: UUID, *, branch: int | None
    ) -> Sequence[TopicPeriod]:
        """Return the periods that hold events, newest first."""


class ClusteringStore(Protocol):
    """What clustering reads and writes, of the conversation of a job."""

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Clustering:
        """Return how far it is. Raises ResourceNotFoundError."""

    async def list_embeddings(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *,
        embedding_model: str,
        after_seq: int,
        changed_only: bool,
        limit: int,
    ) -> Sequence[EventEmbedding]:
        """Return events by their vectors, in order."""

    async def apply(self, tenant_id: UUID, held: JobLease, assignment: Assignment) -> None:
        """Write what was found, whole or not at all. Raises JobLeaseLostError."""
