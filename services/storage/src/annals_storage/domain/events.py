"""Events in canonical form, as the domain sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class EventType(StrEnum):
    """Kind of an event, as stored."""

    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SYSTEM = "system"
    ERROR = "error"


class Role(StrEnum):
    """Who speaks in a message, as stored."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class EventStatus(StrEnum):
    """Whether an event is as it is meant to be, as stored."""

    PENDING = "pending"
    COMPLETE = "complete"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


TRUNK = 1
"""The branch every conversation begins with."""


@dataclass(frozen=True, slots=True)
class EventBody:
    """What happened. Which members are set follows from `type`.

    message: role, content, author_name · tool_call: tool_call_id, tool_name, tool_input ·
    tool_result: tool_call_id, tool_name, tool_result, is_error · system: content ·
    error: error_type, error_message.
    """

    type: EventType
    role: Role | None = None
    content: str | None = None
    author_name: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_input: str | None = None
    tool_result: str | None = None
    is_error: bool = False
    error_type: str | None = None
    error_message: str | None = None

    def words(self) -> str:
        """Return the event's own words: what tokens are counted of."""
        match self.type:
            case EventType.MESSAGE | EventType.SYSTEM:
                return self.content or ""
            case EventType.TOOL_CALL:
                return self.tool_input or ""
            case EventType.TOOL_RESULT:
                return self.tool_result or ""
            case EventType.ERROR:
                return self.error_message or ""

    def label(self) -> str:
        """Return who or what the words belong to, as a prefix that helps to find them."""
        match self.type:
            case EventType.MESSAGE:
                return f"{self.author_name}: " if self.author_name else ""
            case EventType.TOOL_CALL:
                return f"{self.tool_name}: "
            case EventType.TOOL_RESULT:
                return f"{self.tool_name} -> "
            case EventType.ERROR:
                return f"{self.error_type}: "
            case EventType.SYSTEM:
                return ""

    def text(self) -> str:
        """Return what is embedded and searched: label and words."""
        return self.label() + self.words()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens a provider reported for the call that made an event."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A validated event on its way into the store."""

    event_id: UUID
    body: EventBody
    payload_hash: bytes
    token_count: int
    idempotency_key: str | None = None
    client_supplied_id: bool = False
    model: str | None = None
    provider_response_id: str | None = None
    usage: Usage | None = None
    parent_event_id: UUID | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    event_time: datetime | None = None
    status: EventStatus = EventStatus.COMPLETE
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event: the latest snapshot. An erased one has an empty body of its type."""

    event_id: UUID
    conversation_id: UUID
    seq: int
    body: EventBody
    token_count: int
    event_time: datetime
    created_at: datetime
    model: str | None = None
    provider_response_id: str | None = None
    usage: Usage | None = None
    parent_event_id: UUID | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    branch: int = TRUNK
    turn_id: str | None = None
    status: EventStatus = EventStatus.COMPLETE
    version: int = 1
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    erased_at: datetime | None = None
    superseded_by: UUID | None = None
    origin_event_id: UUID | None = None
    cold_segment_id: UUID | None = None

    @property
    def turn_key(self) -> str:
        """Return conversation_id:turn_id, empty without a turn."""
        return f"{self.conversation_id}:{self.turn_id}" if self.turn_id else ""


@dataclass(frozen=True, slots=True)
class AppendedEvent:
    """What became of one event of an append."""

    event_id: UUID
    seq: int
    replayed: bool
    token_count: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A page of a conversation. Empty tuples and None mean "any"; branch None: the current one."""

    conversation_id: UUID
    after_seq: int = 0
    before_seq: int | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    types: tuple[EventType, ...] = ()
    roles: tuple[Role, ...] = ()
    tool_names: tuple[str, ...] = ()
    descending: bool = False
    limit: int = 100
    branch: int | None = None
    all_branches: bool = False
    show_deleted: bool = False


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in the order asked, and whether more of the query follow.

    `branch`: whose view they are, 0 for none's; of no meaning without events.
    """

    events: tuple[Event, ...]
    has_more: bool
    branch: int = 0
