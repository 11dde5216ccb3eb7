"""Summaries of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from annals.context.v1 import context_summary_pb2 as context_pb
from annals.context.v1 import summarization_service_pb2 as summarization_pb
from annals.storage.v1 import summary_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call, single_call
from annals_client.values import enum_number, enum_numbers, timestamp


def about(
    query: str,
    *,
    conversation_ids: Sequence[str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    max_tokens: int = 0,
    level: int | str = "standard",
    model: str = "",
    timeout: float | None = None,
) -> Call[context_pb.GetContextSummaryResponse]:
    """Summaries that bear on a query, most relevant first, within `max_tokens` (0: 2,000).

    `level`: brief, standard or detailed. Without conversation_ids, where the search finds most.
    """
    request = context_pb.GetContextSummaryRequest(
        query=query,
        conversation_ids=conversation_ids,
        time_range=_time_range(start, end),
        max_tokens=max_tokens,
        level=_level(level),
        model=model,
    )
    return safe_call(lambda stubs: stubs.context.GetContextSummary, request, timeout)


def make(
    conversation_id: str,
    *,
    branch: int = 0,
    first_seq: int = 0,
    last_seq: int = 0,
    event_ids: Sequence[str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    level: int | str = "standard",
    focus_topics: Sequence[str] = (),
    max_tokens: int = 0,
    model: str = "",
    timeout: float | None = None,
) -> Call[summarization_pb.SummarizeResponse]:
    """Summarise a range, some events or a period of a conversation, else the whole of it.

    `max_tokens` 0: the level's own.
    """
    request = summarization_pb.SummarizeRequest(
        conversation_id=conversation_id,
        branch=branch,
        first_seq=first_seq,
        last_seq=last_seq,
        event_ids=event_ids,
        time_range=_time_range(start, end),
        level=_level(level),
        focus_topics=focus_topics,
        max_tokens=max_tokens,
        model=model,
    )
    return safe_call(lambda stubs: stubs.summarization.Summarize, request, timeout)


def get(summary_id: str, *, timeout: float | None = None) -> Call[pb.Summary]:
    """Read one that is kept."""
    request = pb.GetSummaryRequest(summary_id=summary_id)
    call = safe_call(lambda stubs: stubs.summaries.GetSummary, request, timeout)
    return call.map(lambda answer: answer.summary)


def list_all(
    conversation_id: str,
    *,
    branch: int = 0,
    levels: Sequence[int | str] = (),
    heights: Sequence[int] = (),
    first_seq: int = 0,
    last_seq: int = 0,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.Summary]:
    """Those kept of a branch (0: the current one), by first event. Height 0: of events."""
    request = pb.ListSummariesRequest(
        conversation_id=conversation_id,
        branch=branch,
        levels=enum_numbers(pb.SummaryLevel, "SUMMARY_LEVEL_", levels),
        heights=heights,
        first_seq=first_seq,
        last_seq=last_seq,
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.summaries.ListSummaries, request, timeout)
    return Pages(call, lambda answer: answer.summaries, limit)


def runs(
    conversation_id: str,
    *,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.SummaryRun]:
    """How summaries of a conversation were made, newest first."""
    request = pb.ListSummaryRunsRequest(conversation_id=conversation_id, page_size=page_size)
    call = safe_call(lambda stubs: stubs.summaries.ListSummaryRuns, request, timeout)
    return Pages(call, lambda answer: answer.runs, limit)


def delete(summary_id: str, *, timeout: float | None = None) -> Call[None]:
    """Delete one for good. Not repeated by itself: the second time it is not found."""
    request = pb.DeleteSummaryRequest(summary_id=summary_id)
    call = single_call(lambda stubs: stubs.summaries.DeleteSummary, request, timeout)
    return call.map(lambda _answer: None)


def _level(level: int | str) -> Any:
    return enum_number(pb.SummaryLevel, "SUMMARY_LEVEL_", level)


def _time_range(start: datetime | None, end: datetime | None) -> context_pb.SummaryTimeRange | None:
    if start is None and end is None:
        return None
    return context_pb.SummaryTimeRange(start=timestamp(start), end=timestamp(end))
