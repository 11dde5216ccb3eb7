"""TopicService: what readers ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from annals.storage.v1 import topic_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.paging import cut_page, encode_page_token
from annals_common.validation import bounded, check_response_size, page_size, require_uuid, uuids
from annals_storage.domain.topics import Topic, TopicEventsQuery, TopicPeriod
from annals_storage.handlers.access import Access, data_tenant
from annals_storage.handlers.event_queries import (
    MAX_SEQ,
    branch_to_read,
    decode_seq_cursor,
    is_descending,
    seq_range,
)
from annals_storage.handlers.output import event_message, timestamp_message
from annals_storage.ports.search import HitStore
from annals_storage.ports.topics import TopicStore

MAX_TOPICS = 1_000
MAX_BATCH_IDS = 100
DEFAULT_TOPICS = 100


class TopicHandler:
    """Translates."""

    def __init__(self, topics: TopicStore, views: HitStore, access: Access) -> None:
        self._topics, self._views, self._access = topics, views, access

    async def ListTopics(
        self, request: pb.ListTopicsRequest, context: Any
    ) -> pb.ListTopicsResponse:
        tenant_id, conversation_id, branch = await self._asked("ListTopics", request)
        bounded(request.max_topics, "max_topics", low=0, high=MAX_TOPICS)
        limit = request.max_topics or DEFAULT_TOPICS
        found = await self._topics.list(tenant_id, conversation_id, branch=branch, limit=limit)
        return pb.ListTopicsResponse(topics=[_topic_message(topic) for topic in found])

    async def BatchGetTopics(
        self, request: pb.BatchGetTopicsRequest, context: Any
    ) -> pb.BatchGetTopicsResponse:
        tenant_id = data_tenant("BatchGetTopics")
        wanted = uuids(request.topic_ids, "topic_ids", max_items=MAX_BATCH_IDS)
        if not wanted:
            raise FieldInvalidError("topic_ids", f"is required: 1–{MAX_BATCH_IDS} UUIDs")
        found = [(each, await self._topics.get(tenant_id, each)) for each in wanted]
        return pb.BatchGetTopicsResponse(
            topics=[_topic_message(topic) for _, topic in found if topic is not None],
            missing_topic_ids=[str(each) for each, topic in found if topic is None],
        )

    async def ListTopicEvents(
        self, request: pb.ListTopicEventsRequest, context: Any
    ) -> pb.ListTopicEventsResponse:
        tenant_id, conversation_id, branch = await self._asked("ListTopicEvents", request)
        cursor = decode_seq_cursor(request, tenant_id)
        limit, descending = page_size(request.page_size), is_descending(request)
        after_seq, before_seq = seq_range(cursor, descending=descending)
        query = TopicEventsQuery(
            conversation_id=conversation_id,
            topic_id=require_uuid(request.topic_id, "topic_id"),
            branch=branch_to_read(branch or 0, cursor),
            after_seq=after_seq,
            before_seq=before_seq or MAX_SEQ,
            descending=descending,
            limit=limit + 1,
        )
        found = await self._topics.list_events(tenant_id, query)
        page, has_more = cut_page(found, limit)
        response = pb.ListTopicEventsResponse(events=[event_message(event) for event in page])
        check_response_size(response, "page_size")
        if has_more:
            last = (str(page[-1].seq), str(query.branch or 0))
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def ListTopicPeriods(
        self, request: pb.ListTopicPeriodsRequest, context: Any
    ) -> pb.ListTopicPeriodsResponse:
        tenant_id, conversation_id, branch = await self._asked("ListTopicPeriods", request)
        found = await self._topics.list_periods(tenant_id, conversation_id, branch=branch)
        return pb.ListTopicPeriodsResponse(periods=_period_messages(found))

    async def _asked(self, method: str, request: Any) -> tuple[UUID, UUID, int | None]:
        """Return tenant, conversation and branch, all of which are there and the caller's."""
        conversation_id = require_uuid(request.conversation_id, "conversation_id")
        branch = branch_to_read(request.branch, None)
        tenant_id = await self._access.conversation(method, conversation_id)
        # Raises for what is not there.
        await self._views.get_view(tenant_id, conversation_id, branch or 1)
        return tenant_id, conversation_id, branch


def _topic_message(topic: Topic) -> pb.Topic:
    return pb.Topic(
        topic_id=str(topic.topic_id),
        conversation_id=str(topic.conversation_id),
        label=topic.label,
        event_count=topic.event_count,
        first_event_time=timestamp_message(topic.first_at),
        last_event_time=timestamp_message(topic.last_at),
        summary=" ".join(topic.summary),
        samples=topic.samples,
    )


def _period_messages(periods: Sequence[TopicPeriod]) -> list[pb.TopicPeriod]:
    return [
        pb.TopicPeriod(
            name=period.name,
            event_count=period.event_count,
            topics=[
                pb.TopicShare(
                    topic_id=str(share.topic_id), label=share.label, event_count=share.event_count
                )
                for share in period.topics
            ],
        )
        for period in periods
    ]
