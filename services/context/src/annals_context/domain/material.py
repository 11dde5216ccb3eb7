"""What background work has prepared of a conversation: topics, periods, summaries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SummaryLevel(StrEnum):
    """How much a summary keeps."""

    BRIEF = "brief"
    STANDARD = "standard"
    DETAILED = "detailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A cluster of events of one conversation; its id is the same after every re-clustering.

    `samples`: a few of its messages, cut to a line. `period`: its first and last event, UTC.
    """

    topic_id: str
    label: str
    event_count: int
    first_at: datetime
    last_at: datetime
    summary: str = ""
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Period:
    """A part of the past as seen from the conversation's newest event.

    `name`: "today", "this_week", "this_month" or "older"; each leaves out the ones before it.
    `topics`: ids and labels of what was spoken of in it and in how many events, most first.
    """

    name: str
    event_count: int
    topics: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of the events from `first_seq` to `last_seq`, both included, and no others.

    `quality_score` is between 0 and 1.
    """

    summary_id: str
    level: SummaryLevel
    text: str
    first_seq: int
    last_seq: int
    created_at: datetime
    quality_score: float = 0.0
