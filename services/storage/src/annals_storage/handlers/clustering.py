"""TopicService: what a worker reads and writes by the token of its job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from annals.storage.v1 import topic_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.validation import (
    bounded,
    check_count,
    check_response_size,
    require_text,
    require_uuid,
    text,
    uuids,
)
from annals_storage.domain.events import EventType
from annals_storage.domain.jobs import JobKind
from annals_storage.domain.topics import (
    Assignment,
    EventEmbedding,
    NewTopic,
    Topic,
    TopicLine,
    WholeAssignment,
)
from annals_storage.handlers.access import leased_job
from annals_storage.handlers.enums import EVENT_TYPE_NUMBERS
from annals_storage.handlers.event_queries import MAX_SEQ
from annals_storage.handlers.topics import MAX_TOPICS
from annals_storage.ports.topics import ClusteringStore, TopicStore

MAX_PAGE, DEFAULT_PAGE = 2_000, 1_000
MAX_MEMBERS = 1_000_000
MAX_VERSION = 2**31 - 1
MAX_LABEL_CHARS, MAX_LINE_CHARS, MAX_NAME_CHARS = 200, 1_000, 200
MAX_LINES, MAX_SOURCES = 10, 1_000
MAX_CENTROID_BYTES = 2 * 8_192


class ClusteringHandler:
    """Translates. `model`: the name of the one whose vectors are served."""

    def __init__(
        self, topics: TopicStore, clustering: ClusteringStore, *, model: Callable[[], str]
    ) -> None:
        self._topics, self._clustering, self._model = topics, clustering, model

    async def GetClustering(
        self, request: pb.GetClusteringRequest, context: Any
    ) -> pb.GetClusteringResponse:
        tenant_id, held = leased_job("GetClustering", JobKind.TOPICS)
        found = await self._clustering.get(tenant_id, held.subject)
        topics = await self._topics.list(tenant_id, held.subject, branch=None, limit=MAX_TOPICS)
        return pb.GetClusteringResponse(
            event_count=found.event_count,
            clustered_event_count=found.clustered_events,
            unassigned_event_count=found.unassigned_events,
            embedding_model=self._model(),
            clustered_embedding_model=found.embedding_model,
            parameters=found.parameters,
            topics=[_clustered_message(topic) for topic in topics],
            clustering_threshold=found.threshold,
            min_cluster_size=found.min_events,
        )

    async def ListChunkEmbeddings(
        self, request: pb.ListChunkEmbeddingsRequest, context: Any
    ) -> pb.ListChunkEmbeddingsResponse:
        tenant_id, held = leased_job("ListChunkEmbeddings", JobKind.TOPICS)
        bounded(request.after_seq, "after_seq", low=0, high=MAX_SEQ)
        bounded(request.page_size, "page_size", low=0, high=MAX_PAGE)
        found = await self._clustering.list_embeddings(
            tenant_id,
            held.subject,
            embedding_model=self._model(),
            after_seq=request.after_seq,
            changed_only=request.changed_only,
            limit=request.page_size or DEFAULT_PAGE,
        )
        response = pb.ListChunkEmbeddingsResponse(events=[_event_message(it) for it in found])
        check_response_size(response, "page_size")
        return response

    async def ApplyTopics(
        self, request: pb.ApplyTopicsRequest, context: Any
    ) -> pb.ApplyTopicsResponse:
        tenant_id, held = leased_job("ApplyTopics", JobKind.TOPICS)
        await self._clustering.apply(tenant_id, held, _assignment(request))
        return pb.ApplyTopicsResponse()


def _assignment(request: pb.ApplyTopicsRequest) -> Assignment:
    members, topics = _members(request), _topics(request)
    model = require_text(request.embedding_model, "embedding_model", max_chars=MAX_NAME_CHARS)
    if not request.replaces_all:
        return Assignment(members, topics, model)
    parameters = text(request.parameters, "parameters", max_chars=MAX_NAME_CHARS)
    return WholeAssignment(members, topics, model, parameters)


def _members(request: pb.ApplyTopicsRequest) -> tuple[tuple[int, int, UUID | None], ...]:
    check_count(request.seqs, "seqs", max_items=MAX_MEMBERS)
    for name in ("versions", "topic_numbers"):
        if len(getattr(request, name)) != len(request.seqs):
            raise FieldInvalidError(name, "must have as many items as seqs")
    _check_range(request.seqs, "seqs", low=1, high=MAX_SEQ)
    _check_range(request.versions, "versions", low=1, high=MAX_VERSION)
    topic_ids = (None, *uuids(request.topic_ids, "topic_ids", max_items=MAX_TOPICS))
    _check_range(request.topic_numbers, "topic_numbers", low=0, high=len(topic_ids) - 1)
    if len(set(request.seqs)) != len(request.seqs):
        raise FieldInvalidError("seqs", "must not name a position twice")
    return tuple(
        (seq, version, topic_ids[number])
        for seq, version, number in zip(
            request.seqs, request.versions, request.topic_numbers, strict=True
        )
    )


def _check_range(values: Sequence[int], field: str, *, low: int, high: int) -> None:
    """Refuse a list with a number outside [low, high], by the first of them."""
    if values and not (low <= min(values) and max(values) <= high):
        wrong = next(i for i, value in enumerate(values) if not low <= value <= high)
        bounded(values[wrong], f"{field}[{wrong}]", low=low, high=high)


def _topics(request: pb.ApplyTopicsRequest) -> tuple[NewTopic, ...]:
    check_count(request.topics, "topics", max_items=MAX_TOPICS)
    found = tuple(_topic(item, f"topics[{i}]") for i, item in enumerate(request.topics))
    if len({topic.topic_id for topic in found}) != len(found):
        raise FieldInvalidError("topics", "must not name a topic twice")
    return found


def _topic(item: pb.NewTopic, field: str) -> NewTopic:
    if not item.centroid or len(item.centroid) % 2 or len(item.centroid) > MAX_CENTROID_BYTES:
        raise FieldInvalidError(f"{field}.centroid", "must be a vector of float16")
    return NewTopic(
        topic_id=require_uuid(item.topic_id, f"{field}.topic_id"),
        label=text(item.label, f"{field}.label", max_chars=MAX_LABEL_CHARS),
        summary=_lines(item.summary, f"{field}.summary"),
        samples=_lines(item.samples, f"{field}.samples"),
        centroid=item.centroid,
        sources=_sources(item, field),
    )


def _sources(item: pb.NewTopic, field: str) -> tuple[tuple[int, int], ...]:
    check_count(item.source_seqs, f"{field}.source_seqs", max_items=MAX_SOURCES)
    if len(item.source_versions) != len(item.source_seqs):
        raise FieldInvalidError(f"{field}.source_versions", "must have as many as source_seqs")
    return tuple(zip(item.source_seqs, item.source_versions, strict=True))


def _lines(lines: Sequence[pb.TopicLine], field: str) -> tuple[TopicLine, ...]:
    check_count(lines, field, max_items=MAX_LINES)
    return tuple(
        TopicLine(
            event_id=require_uuid(line.event_id, f"{field}[{i}].event_id"),
            version=line.version,
            text=require_text(line.text, f"{field}[{i}].text", max_chars=MAX_LINE_CHARS),
        )
        for i, line in enumerate(lines)
    )


def _clustered_message(topic: Topic) -> pb.ClusteredTopic:
    return pb.ClusteredTopic(
        topic_id=str(topic.topic_id),
        centroid=topic.centroid,
        event_count=topic.event_count,
        is_stale=topic.is_stale,
        label=topic.label,
    )


def _event_message(event: EventEmbedding) -> pb.EventEmbedding:
    return pb.EventEmbedding(
        event_id=str(event.event_id),
        seq=event.seq,
        version=event.version,
        type=EVENT_TYPE_NUMBERS[EventType(event.type)],
        chunk_embeddings=event.embeddings,
        topic_id=str(event.topic_id or ""),
    )
