"""Search over the caller's tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import search_service_pb2 as pb
from annals_client.calls import Call, Pages, safe_call
from annals_client.values import enum_number, enum_numbers, timestamp


def events(
    query: str = "",
    *,
    conversation_ids: Sequence[str] = (),
    agent_ids: Sequence[str] = (),
    user_id: str = "",
    session_id: str = "",
    types: Sequence[int | str] = (),
    roles: Sequence[int | str] = (),
    tool_names: Sequence[str] = (),
    start_time: datetime | None = None,
    end_time: datetime | None = None,
    exclude_event_ids: Sequence[str] = (),
    branch: int = 0,
    all_branches: bool = False,
    mode: int | str = "hybrid",
    limit: int = 0,
    min_score: float = 0.0,
    freshness: int | str = "eventual",
    explain: bool = False,
    ids_only: bool = False,
    reference_time: datetime | None = None,
    vector: Sequence[float] = (),
    group_by: int | str = "event",
    diversity: float = 0.0,
    language: str = "",
    timeout: float | None = None,
) -> Call[pb.SearchEventsResponse]:
    """Find events by meaning and by words. All conditions must hold.

    `mode`: hybrid, dense or lexical. `freshness`: eventual or read-your-writes, which needs
    `conversation_ids`. `branch` of the one conversation, 0: what is in view on the current one.
    `reference_time`: what "last week" is seen from; None: as the server decides.
    `vector`: what to compare by meaning instead of the query; the query may be empty then.
    `group_by`: what a hit stands for: event, chunk or conversation. `diversity`: 0–1, how much
    near-duplicates are moved down. `language`: of the query ("de", "pt-BR"); empty: told from it.
    """
    where = pb.SearchFilter(
        conversation_ids=conversation_ids,
        agent_ids=agent_ids,
        user_id=user_id,
        session_id=session_id,
        types=enum_numbers(res.EventType, "EVENT_TYPE_", types),
        roles=enum_numbers(res.Role, "ROLE_", roles),
        tool_names=tool_names,
        start_time=timestamp(start_time),
        end_time=timestamp(end_time),
        exclude_event_ids=exclude_event_ids,
        branch=branch,
        all_branches=all_branches,
    )
    request = pb.SearchEventsRequest(
        query=query,
        filter=where,
        mode=enum_number(pb.SearchMode, "SEARCH_MODE_", mode),
        limit=limit,
        min_score=min_score,
        freshness=enum_number(pb.SearchFreshness, "SEARCH_FRESHNESS_", freshness),
        explain=explain,
        ids_only=ids_only,
        reference_time=timestamp(reference_time),
        vector=vector,
        group_by=enum_number(pb.SearchGrouping, "SEARCH_GROUPING_", group_by),
        diversity=diversity,
        language=language,
    )
    return safe_call(lambda stubs: stubs.search.SearchEvents, request, timeout)


def log(
    *,
    conversation_id: str = "",
    start_time: datetime | None = None,
    end_time: datetime | None = None,
    page_size: int = 0,
    limit: int | None = None,
    timeout: float | None = None,
) -> Pages[pb.SearchLogEntry]:
    """What was searched, newest first. Needs a key with TENANT_ADMIN."""
    request = pb.ListSearchLogRequest(
        conversation_id=conversation_id,
        start_time=timestamp(start_time),
        end_time=timestamp(end_time),
        page_size=page_size,
    )
    call = safe_call(lambda stubs: stubs.search.ListSearchLog, request, timeout)
    return Pages(call, lambda answer: answer.entries, limit)
