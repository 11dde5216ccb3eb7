"""Tokens that providers reported, and conversations that grow large."""

from __future__ import annotations

from collections.abc import Sequence

from annals.storage.v1 import usage_service_pb2 as pb
from annals_client.calls import Pages, safe_call
from annals_client.values import enum_numbers


def list_all(
    group_by: Sequence[int | str] = (),
    *,
    start_day: str = "",
    end_day: str = "",
    agent_id: str = "",
    user_id: str = "",
    conversation_id: str = "",
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.UsageRow]:
    """Usage added up by any of day, agent, user, conversation and model; by none: one total.

    Days are UTC, such as 2025-10-24, and inclusive.
    """
    request = pb.ListUsageRequest(
        group_by=enum_numbers(pb.UsageDimension, "USAGE_DIMENSION_", group_by),
        start_day=start_day,
        end_day=end_day,
        agent_id=agent_id,
        user_id=user_id,
        conversation_id=conversation_id,
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.usage.ListUsage, request, timeout)
    return Pages(call, lambda answer: answer.rows, limit)


def large_conversations(
    min_event_count: int = 0,
    *,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.LargeConversation]:
    """Conversations of at least so many events (0: the alert size), largest first."""
    request = pb.ListLargeConversationsRequest(min_event_count=min_event_count, page_size=page_size)
    call = safe_call(lambda stubs: stubs.usage.ListLargeConversations, request, timeout)
    return Pages(call, lambda answer: answer.conversations, limit)
