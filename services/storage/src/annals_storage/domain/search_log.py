"""The log of searches, for analytics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from annals_common.principal import Actor


class SearchLogKind(StrEnum):
    """What was searched, as stored."""

    EVENTS = "events"
    MEMORIES = "memories"


@dataclass(frozen=True, slots=True)
class LoggedSearch:
    """One search. `conversation_id`: the one searched, None when there were none or several."""

    search_id: UUID
    kind: SearchLogKind
    query: str
    conversation_id: UUID | None
    hit_count: int
    top_score: float
    search_time_ms: float
    actor: Actor
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SearchLogQuery:
    """A page of the log, newest first. None means "any".

    `cursor` is (created_at, search_id) of the last row of the previous page.
    """

    conversation_id: UUID | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    limit: int = 100
    cursor: tuple[datetime, UUID] | None = None
