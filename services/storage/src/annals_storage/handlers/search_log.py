"""SearchService, the log of searches."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals.storage.v1 import resources_pb2 as resources
from annals.storage.v1 import search_service_pb2 as pb
from annals_common.errors import ScopeMissingError
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.principal import Scope, current_principal
from annals_common.validation import check_response_size, optional_uuid, page_size, timestamp
from annals_storage.domain.search_log import LoggedSearch, SearchLogKind, SearchLogQuery
from annals_storage.handlers.access import acts_for_end_user
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.search import SearchLogStore

KINDS = {
    SearchLogKind.EVENTS: pb.SEARCH_LOG_KIND_EVENTS,
    SearchLogKind.MEMORIES: pb.SEARCH_LOG_KIND_MEMORIES,
}


class SearchLogHandler:
    """Translates; reads only."""

    def __init__(self, searches: SearchLogStore) -> None:
        self._searches = searches

    async def ListSearchLog(
        self, request: pb.ListSearchLogRequest, context: Any
    ) -> pb.ListSearchLogResponse:
        tenant_id = _administered_tenant("ListSearchLog")
        limit = page_size(request.page_size)
        found = await self._searches.page(tenant_id, _query(request, tenant_id, limit + 1))
        page, has_more = cut_page(found, limit)
        response = pb.ListSearchLogResponse(entries=[_entry_message(search) for search in page])
        check_response_size(response, "page_size")
        if has_more:
            cursor = encode_time_cursor(page[-1].created_at, page[-1].search_id)
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response


def _administered_tenant(method: str) -> UUID:
    principal = current_principal()
    is_admin = Scope.TENANT_ADMIN in principal.scopes and not acts_for_end_user(principal)
    if principal.tenant_id is None or not is_admin:
        raise ScopeMissingError(method, "a tenant's key with the scope TENANT_ADMIN")
    return principal.tenant_id


def _query(request: pb.ListSearchLogRequest, tenant_id: UUID, limit: int) -> SearchLogQuery:
    cursor = decode_page_token(request, tenant_id, parts=2)
    start, end = request.start_time, request.end_time
    return SearchLogQuery(
        conversation_id=optional_uuid(request.conversation_id, "conversation_id"),
        start_time=timestamp(start, "start_time") if request.HasField("start_time") else None,
        end_time=timestamp(end, "end_time") if request.HasField("end_time") else None,
        limit=limit,
        cursor=decode_time_cursor(cursor),
    )


def _entry_message(search: LoggedSearch) -> pb.SearchLogEntry:
    actor = search.actor
    return pb.SearchLogEntry(
        search_id=str(search.search_id),
        kind=KINDS[search.kind],
        query=search.query,
        conversation_id=str(search.conversation_id or ""),
        hit_count=search.hit_count,
        top_score=search.top_score,
        search_time_ms=search.search_time_ms,
        actor=resources.Actor(
            api_key_id=str(actor.api_key_id or ""),
            user_id=actor.user_id or "",
            session_id=actor.session_id or "",
        ),
        create_time=timestamp_message(search.created_at),
    )
