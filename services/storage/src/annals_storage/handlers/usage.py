"""UsageService."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from uuid import UUID

from annals.storage.v1 import usage_service_pb2 as pb
from annals.storage.v1 import usage_service_pb2_grpc as pb_grpc
from annals_common.errors import FieldInvalidError, PageTokenInvalidError
from annals_common.paging import cut_page, decode_page_token, encode_page_token
from annals_common.validation import bounded, enums, optional_uuid, page_size, text
from annals_storage.domain.usage import ConversationSize, UsageDimension, UsageQuery, UsageSum
from annals_storage.handlers.access import data_tenant
from annals_storage.handlers.output import timestamp_message
from annals_storage.ports.usage import UsageStore

MAX_OWNER_CHARS = 256
MAX_EVENT_COUNT = 2**62
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

DIMENSIONS: dict[int, UsageDimension] = {
    pb.USAGE_DIMENSION_DAY: UsageDimension.DAY,
    pb.USAGE_DIMENSION_AGENT: UsageDimension.AGENT,
    pb.USAGE_DIMENSION_USER: UsageDimension.USER,
    pb.USAGE_DIMENSION_CONVERSATION: UsageDimension.CONVERSATION,
    pb.USAGE_DIMENSION_MODEL: UsageDimension.MODEL,
}


class UsageHandler(pb_grpc.UsageServiceServicer):
    """Translates. `large_events`: the size from which the installation calls one large."""

    def __init__(self, usage: UsageStore, *, large_events: int) -> None:
        self._usage = usage
        self._large_events = large_events

    async def ListUsage(self, request: pb.ListUsageRequest, context: Any) -> pb.ListUsageResponse:
        tenant_id = data_tenant("ListUsage")
        limit = page_size(request.page_size)
        query = _query(request, tenant_id, limit + 1)
        page, has_more = cut_page(await self._usage.page(tenant_id, query), limit)
        if not page and not query.group_by:
            page = [UsageSum()]
        response = pb.ListUsageResponse(rows=[_row_message(item) for item in page])
        if has_more:
            cursor = page[-1].group(query.group_by)
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response

    async def ListLargeConversations(
        self, request: pb.ListLargeConversationsRequest, context: Any
    ) -> pb.ListLargeConversationsResponse:
        tenant_id = data_tenant("ListLargeConversations")
        limit = page_size(request.page_size)
        bounded(request.min_event_count, "min_event_count", low=0, high=MAX_EVENT_COUNT)
        found = await self._usage.page_large(
            tenant_id,
            min_event_count=request.min_event_count or self._large_events,
            cursor=_size_cursor(request, tenant_id),
            limit=limit + 1,
        )
        page, has_more = cut_page(found, limit)
        response = pb.ListLargeConversationsResponse(
            conversations=[_size_message(item) for item in page]
        )
        if has_more:
            cursor = (str(page[-1].event_count), str(page[-1].conversation_id))
            response.next_page_token = encode_page_token(request, tenant_id, cursor)
        return response


def _query(request: pb.ListUsageRequest, tenant_id: UUID, limit: int) -> UsageQuery:
    group_by = enums(request.group_by, DIMENSIONS, "group_by")
    if len(set(group_by)) < len(group_by):
        raise FieldInvalidError("group_by", "must not repeat a dimension")
    start_day, end_day = _day(request.start_day, "start_day"), _day(request.end_day, "end_day")
    if start_day and end_day and end_day < start_day:
        raise FieldInvalidError("end_day", "must not be before start_day", request.end_day)
    return UsageQuery(
        group_by=group_by,
        start_day=start_day,
        end_day=end_day,
        agent_id=optional_uuid(request.agent_id, "agent_id"),
        user_id=text(request.user_id, "user_id", max_chars=MAX_OWNER_CHARS) or None,
        conversation_id=optional_uuid(request.conversation_id, "conversation_id"),
        limit=limit,
        cursor=_group_cursor(request, tenant_id, len(group_by)),
    )


def _group_cursor(
    request: pb.ListUsageRequest, tenant_id: UUID, parts: int
) -> tuple[str, ...] | None:
    cursor = decode_page_token(request, tenant_id, parts=parts)
    if cursor is not None and (not cursor or "\x00" in "".join(cursor)):
        raise PageTokenInvalidError
    return cursor


def _day(value: str, field: str) -> date | None:
    if not value:
        return None
    try:
        return date.fromisoformat(value if _DAY.fullmatch(value) else "")
    except ValueError as error:
        raise FieldInvalidError(field, "must be a day such as 2025-10-24", value) from error


def _size_cursor(
    request: pb.ListLargeConversationsRequest, tenant_id: UUID
) -> tuple[int, UUID] | None:
    cursor = decode_page_token(request, tenant_id, parts=2)
    if cursor is None:
        return None
    try:
        count, conversation_id = int(cursor[0]), UUID(cursor[1])
    except ValueError as error:
        raise PageTokenInvalidError from error
    if not 0 <= count <= MAX_EVENT_COUNT:
        raise PageTokenInvalidError
    return count, conversation_id


def _row_message(row: UsageSum) -> pb.UsageRow:
    return pb.UsageRow(**{name: getattr(row, name) for name in row.__slots__})


def _size_message(size: ConversationSize) -> pb.LargeConversation:
    return pb.LargeConversation(
        conversation_id=str(size.conversation_id),
        event_count=size.event_count,
        token_count=size.token_count,
        last_event_time=timestamp_message(size.last_event_at),
    )
