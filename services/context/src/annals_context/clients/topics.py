"""Topics of conversations, over TopicService of storage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import grpc.aio

from annals.storage.v1 import topic_service_pb2 as pb
from annals.storage.v1 import topic_service_pb2_grpc
from annals_context.clients.calling import call
from annals_context.domain.material import Period, Topic
from annals_context.ports import Caller


class GrpcTopics:
    """`Topics` behind a channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = topic_service_pb2_grpc.TopicServiceStub(channel)

    async def list_topics(
        self, caller: Caller, conversation_id: str, *, branch: int, limit: int
    ) -> Sequence[Topic]:
        """Return the largest topics; none when nothing was clustered yet."""
        request = pb.ListTopicsRequest(
            conversation_id=conversation_id, branch=branch, max_topics=limit
        )
        response = await call(self._stub.ListTopics, request, caller)
        return [_topic_from(topic) for topic in response.topics]

    async def list_periods(
        self, caller: Caller, conversation_id: str, *, branch: int
    ) -> Sequence[Period]:
        """Return the periods that hold events, newest first."""
        request = pb.ListTopicPeriodsRequest(conversation_id=conversation_id, branch=branch)
        response = await call(self._stub.ListTopicPeriods, request, caller)
        return [_period_from(period) for period in response.periods]

    async def ask(self, caller: Caller, method: str, request: Any) -> Any:
        """Call a method of TopicService; messages are storage's own."""
        return await call(getattr(self._stub, method), request, caller)


def _topic_from(topic: pb.Topic) -> Topic:
    return Topic(
        topic_id=topic.topic_id,
        label=topic.label,
        event_count=topic.event_count,
        first_at=topic.first_event_time.ToDatetime(tzinfo=UTC),
        last_at=topic.last_event_time.ToDatetime(tzinfo=UTC),
        summary=topic.summary,
        samples=tuple(topic.samples),
    )


def _period_from(period: pb.TopicPeriod) -> Period:
    shares = tuple((share.topic_id, share.label, share.event_count) for share in period.topics)
    return Period(period.name, period.event_count, shares)
