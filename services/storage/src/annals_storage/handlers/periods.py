"""EventService: periods."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Any

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, PageTokenInvalidError
from annals_common.validation import enums, page_size, require_text, require_uuid, text
from annals_storage.commands.remembering import utc_now
from annals_storage.domain.events import EventQuery
from annals_storage.domain.periods import (
    Period,
    PeriodInvalidError,
    ZoneUnknownError,
    find_zone,
    parse_period,
)
from annals_storage.handlers.access import Access, own_data_tenant
from annals_storage.handlers.enums import EVENT_TYPES
from annals_storage.handlers.event_queries import (
    SeqCursor,
    branch_to_read,
    decode_seq_cursor,
    is_descending,
    next_page_token,
    read_page,
    seq_range,
)
from annals_storage.handlers.output import event_message, timestamp_message
from annals_storage.ports.events import EventStore

MAX_PERIOD_CHARS = 100
MAX_ZONE_CHARS = 64


class PeriodHandler:
    """Translates; what periods are is in domain.periods."""

    def __init__(
        self, events: EventStore, access: Access, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._events, self._access, self._now = events, access, now

    async def ListPeriod(
        self, request: pb.ListPeriodRequest, context: Any
    ) -> pb.ListPeriodResponse:
        tenant_id = own_data_tenant("ListPeriod")
        cursor = decode_seq_cursor(request, tenant_id, rest=2)
        period = _period_of(cursor) if cursor else _asked_period(request, self._now())
        query = _query(request, cursor, period)
        await self._access.conversation("ListPeriod", query.conversation_id)
        page = await read_page(self._events, tenant_id, query, cursor)
        return pb.ListPeriodResponse(
            events=[event_message(event) for event in page.events],
            next_page_token=next_page_token(request, tenant_id, page, _cursor(period)),
            start_time=timestamp_message(period.start),
            end_time=timestamp_message(period.end),
        )


def _query(request: pb.ListPeriodRequest, cursor: SeqCursor | None, period: Period) -> EventQuery:
    descending = is_descending(request)
    after_seq, before_seq = seq_range(cursor, descending=descending)
    return EventQuery(
        conversation_id=require_uuid(request.conversation_id, "conversation_id"),
        after_seq=after_seq,
        before_seq=before_seq or None,
        start_time=period.start,
        end_time=period.end,
        types=enums(request.types, EVENT_TYPES, "types"),
        descending=descending,
        limit=page_size(request.page_size),
        branch=branch_to_read(request.branch, cursor),
    )


def _cursor(period: Period) -> tuple[str, str]:
    """Return what page tokens keep of a period."""
    return period.start.isoformat(), period.end.isoformat()


def _period_of(cursor: SeqCursor) -> Period:
    """Return the period of the first page, also when "today" is over by now."""
    try:
        start, end = map(datetime.fromisoformat, cursor.rest)
    except ValueError as error:
        raise PageTokenInvalidError from error
    if start.tzinfo is None or end.tzinfo is None:
        raise PageTokenInvalidError
    return Period(start, end)


def _asked_period(request: pb.ListPeriodRequest, now: datetime) -> Period:
    period = require_text(request.period, "period", max_chars=MAX_PERIOD_CHARS)
    try:
        return parse_period(period, _zone(request), now)
    except PeriodInvalidError as error:
        raise FieldInvalidError("period", str(error), period) from error


def _zone(request: pb.ListPeriodRequest) -> tzinfo:
    name = text(request.timezone, "timezone", max_chars=MAX_ZONE_CHARS) or "UTC"
    try:
        return find_zone(name)
    except ZoneUnknownError as error:
        raise FieldInvalidError(
            "timezone", "must be an IANA name such as Europe/Zurich", name
        ) from error
