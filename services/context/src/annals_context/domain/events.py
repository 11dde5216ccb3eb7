"""Canonical events as the context engine sees them: no provider, no proto, no store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from annals_context.domain.handles import EventHandle


class EventType(StrEnum):
    """Kind of an event."""

    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    SYSTEM = "system"
    ERROR = "error"


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class EventStatus(StrEnum):
    """Whether an event is as it is meant to be."""

    PENDING = "pending"
    COMPLETE = "complete"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


_SHOWN = frozenset({EventStatus.COMPLETE, EventStatus.INCOMPLETE})
TOOL_TYPES = frozenset({EventType.TOOL_CALL, EventType.TOOL_RESULT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. Which members are set follows from `type`; the others are empty.

    message: role, content, author_name · tool_call: tool_call_id, tool_name, tool_input (JSON
    text, byte for byte) · tool_result: tool_call_id, tool_name, tool_result, is_error ·
    system: content · error: error_type, error_message. `seq` is 0 and `event_id` empty when
    the event is not stored. `metadata` holds JSON values.
    """

    type: EventType
    event_id: str = ""
    conversation_id: str = ""
    seq: int = 0
    role: Role | None = None
    content: str = ""
    author_name: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    tool_input: str = ""
    tool_result: str = ""
    is_error: bool = False
    error_type: str = ""
    error_message: str = ""
    status: EventStatus = EventStatus.COMPLETE
    model: str = ""
    provider_response_id: str = ""
    event_time: datetime | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def belongs_in_context(self) -> bool:
        """False while it is pending and when it failed: a model would take it for said."""
        return self.status in _SHOWN

    @property
    def handle(self) -> str:
        """Name it in a text; empty when it is not stored."""
        return str(EventHandle(self.seq)) if self.seq else ""

    @property
    def date(self) -> str:
        """The day it happened in UTC, such as "2024-10-15"; empty when unknown."""
        if self.event_time is None:
            return ""
        aware = self.event_time if self.event_time.tzinfo else self.event_time.replace(tzinfo=UTC)
        return aware.astimezone(UTC).date().isoformat()

    @property
    def body(self) -> str:
        """Its words without saying who speaks."""
        match self.type:
            case EventType.TOOL_CALL:
                return self.tool_input or "{}"
            case EventType.TOOL_RESULT:
                return self.tool_result
            case EventType.ERROR:
                return self.error_message
            case _:
                return self.content

    @property
    def is_user_message(self) -> bool:
        """True when the end user speaks."""
        return self.type is EventType.MESSAGE and self.role is Role.USER
