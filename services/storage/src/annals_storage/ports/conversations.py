"""Where conversations, their branches and their copies are kept."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_storage.domain.branches import Branch, NewBranch
from annals_storage.domain.conversations import (
    Conversation,
    ConversationChange,
    ConversationQuery,
    Creation,
    NewConversation,
)
from annals_storage.domain.forks import Fork, NewFork


class ConversationStore(Protocol):
    """Where conversations are kept."""

    async def create(self, tenant_id: UUID, new: NewConversation) -> Creation:
        """Insert, or find what has the id or the request_id."""

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Return it, deleted or not."""

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""

    async def page(self, tenant_id: UUID, query: ConversationQuery) -> list[Conversation]:
        """Return one page, last active first."""

    async def update(
        self, tenant_id: UUID, change: ConversationChange
    ) -> tuple[Conversation | None, Conversation | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched."""

    async def end(
        self, tenant_id: UUID, conversation_id: UUID, summary: str | None
    ) -> Conversation | None:
        """Complete it; return it as it is now."""

    async def archive(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Put it away; return it as it is now."""

    async def set_deleted(
        self, tenant_id: UUID, conversation_id: UUID, *, deleted: bool
    ) -> Conversation | None:
        """Hide or show it; return it as it is now."""


class BranchStore(Protocol):
    """Where branches are kept."""

    async def open(self, tenant_id: UUID, new: NewBranch) -> Branch:
        """Return the branch opened by this call, or by the one it repeats.

        Raises ResourceNotFoundError, IdempotencyKeyReusedError, LimitExceededError.
        """

    async def select(self, tenant_id: UUID, conversation_id: UUID, branch: int) -> Branch:
        """Make a branch current. Raises ResourceNotFoundError."""

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, after_branch: int, limit: int
    ) -> list[Branch]:
        """Return one page, oldest first; empty only without the conversation or behind its end."""


class ForkStore(Protocol):
    """Where conversations are copied."""

    async def fork(self, tenant_id: UUID, new: NewFork) -> Fork:
        """Return the copy made by this call, or by the one it repeats.

        Raises ResourceNotFoundError, ResourceAlreadyExistsError, IdempotencyKeyReusedError,
        SourceIsColdError.
        """
