"""What clustering reads and writes, over TopicService of storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import grpc.aio
import numpy as np

from annals.storage.v1 import (
    event_service_pb2,
    event_service_pb2_grpc,
    topic_service_pb2_grpc,
)
from annals.storage.v1 import topic_service_pb2 as pb
from annals_context.clients.calling import call
from annals_context.domain.events import Event
from annals_context.domain.topic_clusters import Vectors
from annals_context.domain.topic_texts import Said
from annals_context.domain.topic_work import (
    Clustering,
    FormerTopic,
    Found,
    FoundTopic,
    Line,
    Member,
)
from annals_context.ports import Caller
from annals_context.translation import event_from

PAGE_EVENTS = 2_000
BATCH_IDS = 500


class GrpcClusteringWork:
    """`ClusteringWork` behind a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._topics = topic_service_pb2_grpc.TopicServiceStub(channel)
        self._events = event_service_pb2_grpc.EventServiceStub(channel)

    async def get(self, caller: Caller) -> Clustering:
        """Return how far the conversation is clustered."""
        found = await call(self._topics.GetClustering, pb.GetClusteringRequest(), caller)
        own = [t for t in found.topics if found.clustered_embedding_model == found.embedding_model]
        return Clustering(
            event_count=found.event_count,
            clustered_event_count=found.clustered_event_count,
            embedding_model=found.embedding_model,
            clustered_embedding_model=found.clustered_embedding_model,
            parameters=found.parameters,
            topics=tuple(FormerTopic(t.topic_id, t.event_count, t.is_stale) for t in own),
            centroids=_vectors([t.centroid for t in own]),
            threshold=(
                found.clustering_threshold if found.HasField("clustering_threshold") else None
            ),
            min_events=found.min_cluster_size if found.HasField("min_cluster_size") else None,
        )

    async def pages(
        self, caller: Caller, *, changed_only: bool
    ) -> AsyncIterator[tuple[list[Member], Vectors]]:
        """Yield events in order with vectors of unit length: all, or what changed."""
        after_seq, is_last = 0, False
        while not is_last:
            request = pb.ListChunkEmbeddingsRequest(
                after_seq=after_seq, changed_only=changed_only, page_size=PAGE_EVENTS
            )
            found = await call(self._topics.ListChunkEmbeddings, request, caller)
            is_last = len(found.events) < PAGE_EVENTS
            if found.events:
                after_seq = found.events[-1].seq
                yield [_member_from(event) for event in found.events], _of_events(found.events)

    async def said(self, caller: Caller, event_ids: Sequence[str]) -> dict[str, Said]:
        """Return words by event id; of events that are gone none."""
        said: dict[str, Said] = {}
        for start in range(0, len(event_ids), BATCH_IDS):
            request = event_service_pb2.BatchGetEventsRequest(
                event_ids=event_ids[start : start + BATCH_IDS]
            )
            found = await call(self._events.BatchGetEvents, request, caller)
            events = map(event_from, found.events)
            said |= {event.event_id: _said_from(event) for event in events}
        return said

    async def apply(self, caller: Caller, found: Found) -> None:
        """Write what was found, whole or not at all."""
        names = list(dict.fromkeys(name for name in found.topic_ids if name))
        numbers = {"": 0, **{name: number for number, name in enumerate(names, start=1)}}
        request = pb.ApplyTopicsRequest(
            seqs=[member.seq for member in found.members],
            versions=[member.version for member in found.members],
            topic_ids=names,
            topic_numbers=[numbers[name] for name in found.topic_ids],
            topics=[_topic_message(topic) for topic in found.topics],
            replaces_all=found.parameters is not None,
            embedding_model=found.embedding_model,
            parameters=found.parameters or "",
        )
        await call(self._topics.ApplyTopics, request, caller)


def _member_from(event: pb.EventEmbedding) -> Member:
    return Member(event.event_id, event.seq, event.version, event.topic_id)


def _of_events(events: Sequence[pb.EventEmbedding]) -> Vectors:
    """Return the mean of each event's chunks, of unit length."""
    means = np.stack([_vectors(event.chunk_embeddings).mean(axis=0) for event in events])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(means / np.maximum(lengths, 1e-9), dtype=np.float32)


def _vectors(encoded: Sequence[bytes]) -> Vectors:
    if not encoded:
        return np.zeros((0, 1), dtype=np.float32)
    return np.stack([np.frombuffer(each, dtype="<f2") for each in encoded]).astype(np.float32)


def _said_from(event: Event) -> Said:
    words = event.content or event.tool_result or event.tool_input or event.error_message
    return Said(0, words, event.author_name)


def _topic_message(topic: FoundTopic) -> pb.NewTopic:
    return pb.NewTopic(
        topic_id=topic.topic_id,
        label=topic.label[:200],
        summary=[_line_message(line) for line in topic.summary],
        samples=[_line_message(line) for line in topic.samples],
        centroid=topic.centroid,
        source_seqs=[source.seq for source in topic.sources],
        source_versions=[source.version for source in topic.sources],
    )


def _line_message(line: Line) -> pb.TopicLine:
    return pb.TopicLine(event_id=line.source.event_id, version=line.source.version, text=line.text)
