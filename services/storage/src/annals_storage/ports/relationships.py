"""Where relationships and attachments are kept."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_storage.domain.relationships import (
    Attachment,
    NewAttachment,
    NewRelationship,
    Relationship,
    RelationshipQuery,
)
from annals_storage.ports.paging import PageCursor


class RelationshipStore(Protocol):
    """Where relationships and attachments are kept."""

    async def create(self, tenant_id: UUID, new: NewRelationship) -> Relationship:
        """Insert it, or update score and metadata of what is there.

        Raises ResourceNotFoundError, RelationshipCycleError.
        """

    async def page(self, tenant_id: UUID, query: RelationshipQuery) -> list[Relationship]:
        """Return one page, newest first."""

    async def delete(self, tenant_id: UUID, relationship_id: UUID) -> None:
        """Raises ResourceNotFoundError."""

    async def attach(
        self, tenant_id: UUID, new: NewAttachment, *, event_id: UUID | None
    ) -> Attachment:
        """Raises ResourceNotFoundError, ResourceAlreadyExistsError."""

    async def get_attachment(self, tenant_id: UUID, attachment_id: UUID) -> Attachment:
        """Raises ResourceNotFoundError."""

    async def page_attachments(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> list[Attachment]:
        """Return one page, newest first."""
