"""What clustering needs of storage, for the conversation of a job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from annals_context.domain.topic_clusters import Vectors
from annals_context.domain.topic_texts import Said
from annals_context.domain.topic_work import Clustering, Found, Member
from annals_context.ports import Caller


class ClusteringWork(Protocol):
    """By the token of a job of the kind "topics". Methods raise AnnalsError as storage did."""

    async def get(self, caller: Caller) -> Clustering:
        """Return how far the conversation is clustered."""

    def pages(
        self, caller: Caller, *, changed_only: bool
    ) -> AsyncIterator[tuple[list[Member], Vectors]]:
        """Yield events in order with vectors (n, d) of unit length: all, or what changed."""

    async def said(self, caller: Caller, event_ids: Sequence[str]) -> dict[str, Said]:
        """Return words by event id, `place` being 0; of events that are gone none."""

    async def apply(self, caller: Caller, found: Found) -> None:
        """Write what was found, whole or not at all."""
