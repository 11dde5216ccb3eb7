"""What a clustering is told of a conversation, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.topic_clusters import ClusterParameters, Vectors

SMALL_EVENTS = 500
"""Conversations up to so many events are clustered as a whole each time: it takes a moment."""
GROWTH = 1.2
"""Others when they have so many times the events they had when that was last done."""


@dataclass(frozen=True, slots=True)
class FormerTopic:
    """A topic as it is. `is_stale`: a text of it is gone."""

    topic_id: str
    event_count: int
    is_stale: bool


@dataclass(frozen=True, slots=True)
class Clustering:
    """How far a conversation is clustered. `centroids` (k, d) are those of `topics`, in order.

    `threshold`, `min_events`: as its agent wants it; None: as the worker is set.
    """

    event_count: int
    clustered_event_count: int
    embedding_model: str
    clustered_embedding_model: str
    parameters: str
    topics: tuple[FormerTopic, ...]
    centroids: Vectors
    threshold: float | None = None
    min_events: int | None = None

    def wanted(self, default: ClusterParameters) -> ClusterParameters:
        """Return what the conversation is to be clustered by."""
        return ClusterParameters(
            default.threshold if self.threshold is None else self.threshold,
            default.min_events if self.min_events is None else self.min_events,
        )


@dataclass(frozen=True, slots=True)
class Member:
    """An event that is looked at. `topic_id`: the topic it is in so far, "" for none."""

    event_id: str
    seq: int
    version: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a topic's texts, and the event it is from."""

    source: Member
    text: str


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as it is to be. `sources`: the events its texts were made from."""

    topic_id: str
    label: str
    summary: tuple[Line, ...]
    samples: tuple[Line, ...]
    centroid: bytes
    sources: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a clustering found: the topic of every event it looked at, "" for none.

    `parameters`: what all events were clustered with; None: some were added to topics there are.
    """

    members: tuple[Member, ...]
    topic_ids: tuple[str, ...]
    topics: tuple[FoundTopic, ...]
    embedding_model: str
    parameters: str | None = None


def is_whole_due(now: Clustering, parameters: ClusterParameters) -> bool:
    """Whether all events are to be clustered together, rather than the new ones added."""
    return (
        now.event_count <= SMALL_EVENTS
        or now.clustered_embedding_model != now.embedding_model
        or now.parameters != str(parameters)
        or now.event_count > GROWTH * now.clustered_event_count
        or any(topic.is_stale for topic in now.topics)
    )
