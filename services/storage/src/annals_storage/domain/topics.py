"""Topics: clusters of the events of one conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as readers see it, on one branch. `summary` and `samples`: lines that still hold.

    `is_stale`: a text of it is gone or was never made. `centroid`: float16, little endian.
    """

    topic_id: UUID
    conversation_id: UUID
    label: str
    event_count: int
    first_at: datetime
    last_at: datetime
    summary: tuple[str, ...]
    samples: tuple[str, ...]
    is_stale: bool
    centroid: bytes
    embedding_model: str


@dataclass(frozen=True, slots=True)
class TopicShare:
    """How many events of a period are of a topic."""

    topic_id: UUID
    label: str
    event_count: int


@dataclass(frozen=True, slots=True)
class TopicPeriod:
    """A part of the past. `event_count` counts events of no topic, too."""

    name: str
    event_count: int
    topics: tuple[TopicShare, ...]


@dataclass(frozen=True, slots=True)
class Clustering:
    """How far a conversation is clustered. `threshold`, `min_events`: as its agent wants it."""

    event_count: int
    clustered_events: int
    unassigned_events: int
    embedding_model: str
    parameters: str
    threshold: float | None
    min_events: int | None


@dataclass(frozen=True, slots=True)
class EventEmbedding:
    """An event by the vectors of its first chunks: float16, little endian."""

    event_id: UUID
    seq: int
    version: int
    type: str
    embeddings: tuple[bytes, ...]
    topic_id: UUID | None


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A line of a topic's texts, and the version of the event it is from."""

    event_id: UUID
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic as it is to be. `sources`: (seq, version) of the events its texts were made from."""

    topic_id: UUID
    label: str
    summary: tuple[TopicLine, ...]
    samples: tuple[TopicLine, ...]
    centroid: bytes
    sources: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a clustering found. `members`: (seq, version, topic) of the events it looked at."""

    members: tuple[tuple[int, int, UUID | None], ...]
    topics: tuple[NewTopic, ...]
    embedding_model: str


@dataclass(frozen=True, slots=True)
class WholeAssignment(Assignment):
    """An assignment of all events of a conversation, and the parameters of their clustering."""

    parameters: str


@dataclass(frozen=True, slots=True)
class TopicEventsQuery:
    """A page of a topic's events. `branch`: None for the current one."""

    conversation_id: UUID
    topic_id: UUID
    branch: int | None
    after_seq: int
    before_seq: int
    descending: bool
    limit: int
