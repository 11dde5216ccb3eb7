"""Creates and changes conversations."""

from __future__ import annotations

from uuid import UUID

from annals_common.errors import (
    IdempotencyKeyReusedError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
    VersionMismatchError,
)
from annals_storage.domain.conversations import Conversation, ConversationChange, NewConversation
from annals_storage.ports.conversations import ConversationStore


class CreateConversation:
    """Creates a conversation; safe to retry."""

    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations

    async def __call__(self, tenant_id: UUID, new: NewConversation) -> Conversation:
        """Return it as stored, by this call or by an earlier one with the same content.

        Raises IdempotencyKeyReusedError when the request_id, ResourceAlreadyExistsError when the
        id is taken by other content.
        """
        found = await self._conversations.create(tenant_id, new)
        conversation = found.conversation
        is_same = found.creation_hash == new.creation_hash and conversation.deleted_at is None
        if found.created or is_same:
            return conversation
        if found.by_request:
            raise IdempotencyKeyReusedError(str(new.request_id), kind="request_id")
        raise ResourceAlreadyExistsError("conversation", str(new.conversation_id))


class UpdateConversation:
    """Changes named fields."""

    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations

    async def __call__(self, tenant_id: UUID, change: ConversationChange) -> Conversation:
        """Raises ResourceNotFoundError or VersionMismatchError."""
        changed, current = await self._conversations.update(tenant_id, change)
        if changed is not None:
            return changed
        current = visible(current, change.conversation_id)
        raise VersionMismatchError(expected=change.expected_version or 0, actual=current.version)


def existing(found: Conversation | None, conversation_id: UUID) -> Conversation:
    """Return what was found. Raises ResourceNotFoundError."""
    if found is None:
        raise ResourceNotFoundError("conversation", str(conversation_id))
    return found


def visible(found: Conversation | None, conversation_id: UUID) -> Conversation:
    """Return what was found and is not deleted. Raises ResourceNotFoundError."""
    conversation = existing(found, conversation_id)
    if conversation.deleted_at is not None:
        raise ResourceNotFoundError("conversation", str(conversation_id))
    return conversation
