"""What EventService is asked to list, and the page tokens of lists by seq."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from google.protobuf.message import Message

from annals.storage.v1 import event_service_pb2 as pb
from annals_common.errors import FieldInvalidError, PageTokenInvalidError, ResourceNotFoundError
from annals_common.paging import decode_page_token, encode_page_token
from annals_common.validation import (
    bounded,
    check_count,
    enums,
    page_size,
    require_text,
    require_uuid,
    timestamp,
)
from annals_storage.domain.events import EventPage, EventQuery
from annals_storage.handlers.enums import EVENT_TYPES, ROLES
from annals_storage.handlers.event_input import MAX_ID_CHARS
from annals_storage.ports.events import EventStore

MAX_TOOL_NAMES = 100
MAX_SEQ = 2**62
MAX_BRANCH = 2**31 - 1
_NUMBER = re.compile(r"[0-9]{1,18}")


class _Order(Protocol):
    @property
    def order(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SeqCursor:
    """Where a page ended. `branch` is the one the first page read, so that selecting another
    one on the way does not change the list; `rest` is what else the list keeps.
    """

    seq: int
    branch: int
    rest: tuple[str, ...] = ()


def list_query(request: pb.ListEventsRequest, cursor: SeqCursor | None) -> EventQuery:
    """Return the page ListEvents is asked for."""
    _check_list(request)
    descending = is_descending(request)
    after_seq, before_seq = seq_range(
        cursor, descending=descending, after_seq=request.after_seq, before_seq=request.before_seq
    )
    has = request.HasField
    return EventQuery(
        conversation_id=require_uuid(request.conversation_id, "conversation_id"),
        after_seq=after_seq,
        before_seq=before_seq or None,
        start_time=timestamp(request.start_time, "start_time") if has("start_time") else None,
        end_time=timestamp(request.end_time, "end_time") if has("end_time") else None,
        types=enums(request.types, EVENT_TYPES, "types"),
        roles=enums(request.roles, ROLES, "roles"),
        tool_names=_tool_names(request),
        descending=descending,
        limit=page_size(request.page_size),
        branch=branch_to_read(request.branch, cursor),
        all_branches=request.all_branches,
        show_deleted=request.show_deleted,
    )


def _check_list(request: pb.ListEventsRequest) -> None:
    bounded(request.after_seq, "after_seq", low=0, high=MAX_SEQ)
    bounded(request.before_seq, "before_seq", low=0, high=MAX_SEQ)
    if request.all_branches and request.branch:
        raise FieldInvalidError("branch", "must be 0 with all_branches", request.branch)


def _tool_names(request: pb.ListEventsRequest) -> tuple[str, ...]:
    check_count(request.tool_names, "tool_names", max_items=MAX_TOOL_NAMES)
    return tuple(
        require_text(name, f"tool_names[{i}]", max_chars=MAX_ID_CHARS)
        for i, name in enumerate(request.tool_names)
    )


def is_descending(request: _Order) -> bool:
    """Return which way a list runs."""
    if request.order not in pb.SortOrder.values():
        raise FieldInvalidError("order", "must be one of the known values", request.order)
    return request.order == pb.SORT_ORDER_DESCENDING


def branch_to_read(asked: int, cursor: SeqCursor | None) -> int | None:
    """Return the branch of a list; None: the current one."""
    bounded(asked, "branch", low=0, high=MAX_BRANCH)
    return asked or (cursor.branch if cursor else 0) or None


def seq_range(
    cursor: SeqCursor | None, *, descending: bool, after_seq: int = 0, before_seq: int = 0
) -> tuple[int, int]:
    """Return (after_seq, before_seq), narrowed by where the previous page ended."""
    if cursor is None:
        return after_seq, before_seq
    return (after_seq, cursor.seq) if descending else (cursor.seq, before_seq)


def decode_seq_cursor(request: Message, tenant_id: UUID, *, rest: int = 0) -> SeqCursor | None:
    """Return where the previous page ended; None on the first page.

    Raises PageTokenInvalidError.
    """
    parts = decode_page_token(request, tenant_id, parts=2 + rest)
    if parts is None:
        return None
    seq, branch, *others = parts
    if not (_NUMBER.fullmatch(seq) and _NUMBER.fullmatch(branch)) or int(branch) > MAX_BRANCH:
        raise PageTokenInvalidError
    return SeqCursor(int(seq), int(branch), tuple(others))


async def read_page(
    events: EventStore, tenant_id: UUID, query: EventQuery, cursor: SeqCursor | None
) -> EventPage:
    """Return the page. Raises ResourceNotFoundError, and PageTokenInvalidError when it is the
    page token that names no branch.
    """
    try:
        return await events.page(tenant_id, query)
    except ResourceNotFoundError as error:
        if cursor is not None and error.metadata["resource"] == "branch":
            raise PageTokenInvalidError from error
        raise


def next_page_token(
    request: Message, tenant_id: UUID, page: EventPage, rest: Sequence[str] = ()
) -> str:
    """Return the token of the following page; empty on the last one."""
    if not page.has_more:
        return ""
    return encode_page_token(
        request, tenant_id, (str(page.events[-1].seq), str(page.branch), *rest)
    )
