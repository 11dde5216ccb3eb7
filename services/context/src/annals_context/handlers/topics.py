"""ContextService: topics, as storage keeps them."""

from __future__ import annotations

from typing import Any, Protocol

from annals.context.v1 import topics_pb2 as pb
from annals.storage.v1 import event_service_pb2
from annals.storage.v1 import topic_service_pb2 as storage_pb
from annals_common.errors import ResourceNotFoundError
from annals_common.validation import require_text, require_uuid
from annals_context.handlers.access import current_caller
from annals_context.ports import Caller

MAX_TOPICS = 1_000
MAX_TOPIC_CHARS = 200


class StoredTopics(Protocol):
    """TopicService of storage, with the caller's own credentials. Raises AnnalsError as it did."""

    async def ask(self, caller: Caller, method: str, request: Any) -> Any:
        """Call a method of it."""


class TopicHandler:
    """Passes storage's answers on: what is checked, storage checks."""

    def __init__(self, topics: StoredTopics) -> None:
        self._topics = topics

    async def ListTopics(
        self, request: pb.ListTopicsRequest, context: Any
    ) -> pb.ListTopicsResponse:
        """Return the largest topics, and of which of them was spoken when."""
        caller, room, branch = current_caller(context), request.conversation_id, request.branch
        wanted = storage_pb.ListTopicsRequest(
            conversation_id=room, branch=branch, max_topics=request.limit
        )
        topics = await self._topics.ask(caller, "ListTopics", wanted)
        of_periods = storage_pb.ListTopicPeriodsRequest(conversation_id=room, branch=branch)
        periods = await self._topics.ask(caller, "ListTopicPeriods", of_periods)
        return pb.ListTopicsResponse(topics=topics.topics, periods=periods.periods)

    async def GetCluster(
        self, request: pb.GetClusterRequest, context: Any
    ) -> pb.GetClusterResponse:
        """Return a topic with its newest events."""
        caller = current_caller(context)
        cluster_id = str(require_uuid(request.cluster_id, "cluster_id"))
        wanted = storage_pb.BatchGetTopicsRequest(topic_ids=[cluster_id])
        answer = await self._topics.ask(caller, "BatchGetTopics", wanted)
        if not answer.topics:
            raise ResourceNotFoundError("topic", cluster_id)
        topic = answer.topics[0]
        newest = storage_pb.ListTopicEventsRequest(
            conversation_id=topic.conversation_id,
            topic_id=topic.topic_id,
            page_size=request.limit,
            order=event_service_pb2.SORT_ORDER_DESCENDING,
        )
        found = await self._topics.ask(caller, "ListTopicEvents", newest)
        return pb.GetClusterResponse(topic=topic, events=reversed(found.events))

    async def GetTopicMessages(
        self, request: pb.GetTopicMessagesRequest, context: Any
    ) -> pb.GetTopicMessagesResponse:
        """Return a page of a topic's events."""
        caller = current_caller(context)
        wanted = storage_pb.ListTopicEventsRequest(
            conversation_id=request.conversation_id,
            topic_id=await self._topic_id(caller, request),
            branch=request.branch,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        found = await self._topics.ask(caller, "ListTopicEvents", wanted)
        return pb.GetTopicMessagesResponse(
            events=found.events, next_page_token=found.next_page_token
        )

    async def _topic_id(self, caller: Caller, request: pb.GetTopicMessagesRequest) -> str:
        """Return the id of the topic that is named by its id or its label."""
        name = require_text(request.topic, "topic", max_chars=MAX_TOPIC_CHARS)
        wanted = storage_pb.ListTopicsRequest(
            conversation_id=request.conversation_id, branch=request.branch, max_topics=MAX_TOPICS
        )
        for topic in (await self._topics.ask(caller, "ListTopics", wanted)).topics:
            if name.lower() in {topic.topic_id, topic.label.lower()}:
                return str(topic.topic_id)
        raise ResourceNotFoundError("topic", name)
