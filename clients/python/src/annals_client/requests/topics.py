"""What conversations are about."""

from __future__ import annotations

from annals.context.v1 import topics_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client.calls import Call, Pages, safe_call


def overview(
    conversation_id: str, *, branch: int = 0, limit: int = 0, timeout: float | None = None
) -> Call[pb.ListTopicsResponse]:
    """The largest topics, and of which of them was spoken when."""
    request = pb.ListTopicsRequest(conversation_id=conversation_id, branch=branch, limit=limit)
    return safe_call(lambda stubs: stubs.context.ListTopics, request, timeout)


def cluster(
    cluster_id: str, *, limit: int = 0, timeout: float | None = None
) -> Call[pb.GetClusterResponse]:
    """A topic by its id, with its newest events, oldest first. Raises NotFoundError."""
    request = pb.GetClusterRequest(cluster_id=cluster_id, limit=limit)
    return safe_call(lambda stubs: stubs.context.GetCluster, request, timeout)


def messages(
    conversation_id: str,
    topic: str,
    *,
    branch: int = 0,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[res.Event]:
    """Events of a topic, named by its id or its label, oldest first. Raises NotFoundError."""
    request = pb.GetTopicMessagesRequest(
        conversation_id=conversation_id, topic=topic, branch=branch, page_size=page_size
    )
    call = safe_call(lambda stubs: stubs.context.GetTopicMessages, request, timeout)
    return Pages(call, lambda answer: answer.events, limit)
