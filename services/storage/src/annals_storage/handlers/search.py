"""SearchService."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from annals.storage.v1 import search_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.principal import current_principal
from annals_common.validation import (
    bounded,
    check_count,
    check_response_size,
    enum,
    enums,
    require_text,
    text,
    timestamp,
    uuids,
)
from annals_storage.commands.freshness import FRESHNESS_TIMEOUT_SECONDS
from annals_storage.commands.search_log import SearchLog
from annals_storage.domain.event_search import Hit, Search, SearchResult
from annals_storage.domain.search import SearchScope
from annals_storage.domain.search_log import SearchLogKind
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.conversation_input import MAX_OWNER_CHARS
from annals_storage.handlers.enums import EVENT_TYPES, ROLES, SEARCH_GROUPINGS
from annals_storage.handlers.event_input import MAX_ID_CHARS
from annals_storage.handlers.memory_input import EmbeddingSpace
from annals_storage.handlers.output import event_message
from annals_storage.handlers.search_input import (
    check_consistent,
    query_language,
    query_text,
    search_mode,
)

MAX_HITS = 1_000
DEFAULT_HITS = 10
MAX_SCOPE_IDS = 100
MAX_EXCLUDED_IDS = 1_000
MAX_BRANCH = 2**31 - 1
FRESHNESS_SHARE = 0.5
"""Of the time left, how much waiting for the mirror may use."""


class SearchHandler:
    """Translates; the use case is commands.searching."""

    def __init__(
        self,
        search: Callable[[Search], Awaitable[SearchResult]],
        search_log: SearchLog,
        *,
        space: Callable[[], EmbeddingSpace],
    ) -> None:
        self._search, self._search_log, self._space = search, search_log, space

    async def SearchEvents(
        self, request: pb.SearchEventsRequest, context: Any
    ) -> pb.SearchEventsResponse:
        tenant_id = data_tenant("SearchEvents")
        search = _search(request, tenant_id, self._space(), context.time_remaining())
        result = await self._search(search)
        response = pb.SearchEventsResponse(
            hits=[_hit_message(hit, request) for hit in result.hits],
            unindexed_count=result.backlog.pending + result.backlog.parked,
            index_lag_ms=result.backlog.lag_ms,
            degraded=result.degraded,
            search_time_ms=result.search_time_ms,
        )
        check_response_size(response, "limit")
        self._search_log.record(
            tenant_id,
            current_principal().actor,
            kind=SearchLogKind.EVENTS,
            query=search.query,
            conversation_ids=search.scope.conversation_ids,
            scores=[hit.score for hit in result.hits],
            search_time_ms=result.search_time_ms,
        )
        return response


def _search(
    request: pb.SearchEventsRequest,
    tenant_id: UUID,
    space: EmbeddingSpace,
    time_remaining: float | None,
) -> Search:
    vector = space.vector(request.vector, "vector")
    bounded(request.limit, "limit", low=0, high=MAX_HITS)
    bounded(request.min_score, "min_score", low=0, high=1)
    bounded(request.diversity, "diversity", low=0, high=1)
    return Search(
        query=query_text(request, vector),
        scope=_scope(request.filter, tenant_id),
        mode=search_mode(request, vector),
        limit=request.limit or DEFAULT_HITS,
        min_score=request.min_score,
        freshness_seconds=_freshness(request, time_remaining),
        explain=request.explain,
        reference_time=timestamp(request.reference_time, "reference_time")
        if request.HasField("reference_time")
        else None,
        language=query_language(request.language),
        vector=vector,
        group_by=enum(request.group_by, SEARCH_GROUPINGS, "group_by"),
        diversity=request.diversity,
        expires_at=expires_at(time_remaining),
    )


def _freshness(request: pb.SearchEventsRequest, time_remaining: float | None) -> float | None:
    wanted = freshness_seconds(request.freshness, time_remaining)
    if wanted is not None and not request.filter.conversation_ids:
        raise FieldInvalidError(
            "filter.conversation_ids", "is required with READ_YOUR_WRITES: whose writes?"
        )
    return wanted


def freshness_seconds(freshness: int, time_remaining: float | None) -> float | None:
    """Return how long to wait for the mirror; None: not. `time_remaining`: of the call."""
    if freshness not in pb.SearchFreshness.values():
        raise FieldInvalidError("freshness", "must be one of the known values", freshness)
    if freshness != pb.SEARCH_FRESHNESS_READ_YOUR_WRITES:
        return None
    if time_remaining is None:
        return FRESHNESS_TIMEOUT_SECONDS
    return min(FRESHNESS_TIMEOUT_SECONDS, time_remaining * FRESHNESS_SHARE)


def expires_at(time_remaining: float | None) -> float | None:
    """Return when a call ends, by time.monotonic; None: never."""
    return None if time_remaining is None else time.monotonic() + time_remaining


def _scope(filter_: pb.SearchFilter, tenant_id: UUID) -> SearchScope:
    check_count(filter_.tool_names, "filter.tool_names", max_items=MAX_SCOPE_IDS)
    scope = SearchScope(
        tenant_id=tenant_id,
        conversation_ids=uuids(
            filter_.conversation_ids, "filter.conversation_ids", max_items=MAX_SCOPE_IDS
        ),
        agent_ids=uuids(filter_.agent_ids, "filter.agent_ids", max_items=MAX_SCOPE_IDS),
        user_id=text(filter_.user_id, "filter.user_id", max_chars=MAX_OWNER_CHARS) or None,
        session_id=text(filter_.session_id, "filter.session_id", max_chars=MAX_OWNER_CHARS) or None,
        types=enums(filter_.types, EVENT_TYPES, "filter.types"),
        roles=enums(filter_.roles, ROLES, "filter.roles"),
        tool_names=tuple(
            require_text(name, f"filter.tool_names[{i}]", max_chars=MAX_ID_CHARS)
            for i, name in enumerate(filter_.tool_names)
        ),
        start_time=timestamp(filter_.start_time, "filter.start_time")
        if filter_.HasField("start_time")
        else None,
        end_time=timestamp(filter_.end_time, "filter.end_time")
        if filter_.HasField("end_time")
        else None,
        exclude_event_ids=uuids(
            filter_.exclude_event_ids, "filter.exclude_event_ids", max_items=MAX_EXCLUDED_IDS
        ),
        branch=_branch(filter_),
        all_branches=filter_.all_branches,
    )
    check_consistent(scope)
    return scope


def _branch(filter_: pb.SearchFilter) -> int | None:
    bounded(filter_.branch, "filter.branch", low=0, high=MAX_BRANCH)
    if not filter_.branch:
        return None
    if filter_.all_branches:
        raise FieldInvalidError("filter.all_branches", "must be false when branch is given")
    if len(filter_.conversation_ids) != 1:
        raise FieldInvalidError(
            "filter.branch", "needs exactly one filter.conversation_ids", filter_.branch
        )
    return filter_.branch


def _hit_message(hit: Hit, request: pb.SearchEventsRequest) -> pb.SearchHit:
    message = pb.SearchHit(
        event_id=str(hit.event.event_id),
        conversation_id=str(hit.event.conversation_id),
        seq=hit.event.seq,
        score=hit.score,
        chunk_start=hit.chunk_start,
        chunk_end=hit.chunk_end,
        chunk_index=hit.chunk_index,
        group_size=hit.group_size,
    )
    if not request.ids_only:
        message.event.CopyFrom(event_message(hit.event))
    message.components.extend(
        pb.ScoreComponent(**{name: getattr(part, name) for name in part.__slots__})
        for part in hit.components
    )
    return message
