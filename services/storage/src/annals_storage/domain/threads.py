"""Events that belong together: threads, and tool calls with what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from annals_storage.domain.events import Event


class ThreadDirection(StrEnum):
    """Which way a thread is followed."""

    ANCESTORS = "ancestors"
    DESCENDANTS = "descendants"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """A thread to follow, `depth` links each way; at most `limit` events, nearest first."""

    event_id: UUID
    direction: ThreadDirection
    depth: int
    limit: int


@dataclass(frozen=True, slots=True)
class Thread:
    """Events by seq, and for each its distance in links: negative for ancestors.

    `truncated`: the depth or the limit cut it.
    """

    events: tuple[Event, ...]
    distances: tuple[int, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call, its result, and the message that triggered it."""

    call: Event
    result: Event | None = None
    message_id: UUID | None = None
