"""Where it is known whose conversations are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from annals_storage.domain.conversations import Conversation
from annals_storage.domain.merging import Merge, Merged
from annals_storage.domain.ownership import EndUserMode, Owner


class OwnerStore(Protocol):
    """Where the owners of conversations are looked up."""

    async def owners(self, tenant_id: UUID, conversation_ids: Collection[UUID]) -> list[Owner]:
        """Return the owners of those that exist, deleted ones included."""

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""

    async def agent_mode(self, tenant_id: UUID, agent_id: UUID) -> EndUserMode | None:
        """Return what an agent accepts of end users; None when there is no such agent."""


class SessionMergeStore(Protocol):
    """Where sessions become users'."""

    async def merge(self, tenant_id: UUID, merge: Merge) -> Merged:
        """Move what is left of a session. Raises SessionAlreadyMergedError."""
