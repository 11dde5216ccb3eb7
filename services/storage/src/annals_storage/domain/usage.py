"""Usage that providers reported, added up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID


class UsageDimension(StrEnum):
    """By what usage is added up."""

    DAY = "day"
    AGENT = "agent_id"
    USER = "user_id"
    CONVERSATION = "conversation_id"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A page of sums. None: no condition. Days are UTC and inclusive.

    `cursor`: the group of the last row of the previous page, one value for each dimension.
    """

    group_by: tuple[UsageDimension, ...]
    start_day: date | None
    end_day: date | None
    agent_id: UUID | None
    user_id: str | None
    conversation_id: UUID | None
    limit: int
    cursor: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class UsageSum:
    """One sum. What was not grouped by is empty."""

    day: str = ""
    agent_id: str = ""
    user_id: str = ""
    conversation_id: str = ""
    model: str = ""
    event_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0

    def group(self, dimensions: tuple[UsageDimension, ...]) -> tuple[str, ...]:
        """Return its values of these dimensions."""
        return tuple(getattr(self, dimension.value) for dimension in dimensions)


@dataclass(frozen=True, slots=True)
class ConversationSize:
    """How large a conversation has become."""

    conversation_id: UUID
    event_count: int
    token_count: int
    last_event_at: datetime | None
