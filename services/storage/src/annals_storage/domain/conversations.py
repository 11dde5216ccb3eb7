"""Conversations, as the domain sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from annals_common.ids import derived_uuid


def host_conversation_uuid(tenant_id: UUID, host_id: str) -> UUID:
    """Return the id of the conversation that the host application knows by `host_id`, where
    nobody chose another one: whoever stores into it first arrives at the same row.
    """
    return derived_uuid("host conversation", tenant_id.bytes, host_id)


class ConversationStatus(StrEnum):
    """Where a conversation stands, as stored."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A stored conversation."""

    conversation_id: UUID
    status: ConversationStatus
    last_seq: int
    event_count: int
    message_count: int
    token_count: int
    version: int
    created_at: datetime
    updated_at: datetime
    active_at: datetime
    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    title: str = ""
    client_context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    end_summary: str = ""
    last_event_at: datetime | None = None
    ended_at: datetime | None = None
    deleted_at: datetime | None = None
    host_id: str | None = None
    org_id: str | None = None
    provider_conversation_id: str = ""
    last_response_id: str = ""
    current_branch: int = 1
    branch_count: int = 1
    memory_count: int = 0
    forked_from_conversation_id: UUID | None = None
    forked_from_event_id: UUID | None = None
    forked_from_seq: int | None = None
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A validated conversation on its way into the store."""

    conversation_id: UUID
    creation_hash: bytes
    request_id: UUID | None = None
    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    title: str = ""
    client_context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    host_id: str | None = None
    org_id: str | None = None
    provider_conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class Creation:
    """What a creating call found: the conversation it made, or the one in its way.

    `by_request`: that one was made under the same request_id, not only under the same id.
    """

    conversation: Conversation
    creation_hash: bytes | None
    created: bool
    by_request: bool


@dataclass(frozen=True, slots=True)
class ConversationQuery:
    """A page of conversations, last active first. None and what is empty mean "any".

    `title_contains` is met whatever the case, `metadata` when the conversation's contains it.
    `anonymous`: only those that belong to no user.
    `cursor` is (active_at, conversation_id) of the last row of the previous page.
    """

    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    statuses: tuple[ConversationStatus, ...] = ()
    active_after: datetime | None = None
    active_before: datetime | None = None
    show_deleted: bool = False
    org_id: str | None = None
    title_contains: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    anonymous: bool = False
    limit: int = 100
    cursor: tuple[datetime, UUID] | None = None


@dataclass(frozen=True, slots=True)
class ConversationChange:
    """New values by field name; only the fields named are changed."""

    conversation_id: UUID
    values: dict[str, Any]
    expected_version: int | None = None
