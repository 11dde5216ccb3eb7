"""Page tokens: opaque, bound to their query, worthless to anybody else.

A token carries a cursor and a hash of the query. It grants nothing: the query it continues is
authorised like any other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from google.protobuf.message import Message

from annals_common.errors import PageTokenInvalidError

_HASH_CHARS = 16

T = TypeVar("T")


def cut_page(found: Sequence[T], limit: int) -> tuple[Sequence[T], bool]:
    """Return at most `limit` rows and whether there were more; ask for one more than `limit`."""
    return found[:limit], len(found) > limit


def encode_page_token(request: Message, tenant_id: UUID | None, cursor: Sequence[str]) -> str:
    """Return the token that continues `request` after `cursor`."""
    raw = json.dumps([_query_hash(request, tenant_id), *cursor], separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode_page_token(
    request: Message, tenant_id: UUID | None, *, parts: int
) -> tuple[str, ...] | None:
    """Return the cursor of `request.page_token`, or None on the first page.

    Raises PageTokenInvalidError when the token is malformed or made by another query.
    """
    token: str = request.page_token  # type: ignore[attr-defined]
    if not token:
        return None
    query_hash, *cursor = _unpack(token)
    if query_hash != _query_hash(request, tenant_id) or len(cursor) != parts:
        raise PageTokenInvalidError
    return tuple(cursor)


def encode_time_cursor(moment: datetime, row_id: UUID) -> tuple[str, str]:
    """Return a cursor over (time, id)."""
    return moment.isoformat(), str(row_id)


def decode_time_cursor(cursor: tuple[str, ...] | None) -> tuple[datetime, UUID] | None:
    """Undo encode_time_cursor. Raises PageTokenInvalidError."""
    if cursor is None:
        return None
    try:
        moment, row_id = cursor
        return datetime.fromisoformat(moment), UUID(row_id)
    except ValueError as error:
        raise PageTokenInvalidError from error


def _unpack(token: str) -> list[str]:
    try:
        padded = token + "=" * (-len(token) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise PageTokenInvalidError from error
    if not isinstance(parts, list) or not parts or not all(isinstance(p, str) for p in parts):
        raise PageTokenInvalidError
    return parts


def _query_hash(request: Message, tenant_id: UUID | None) -> str:
    query = type(request)()
    query.CopyFrom(request)
    for field in ("page_token", "page_size"):
        query.ClearField(field)
    digest = hashlib.sha256(type(request).__name__.encode())
    digest.update(tenant_id.bytes if tenant_id else b"")
    digest.update(query.SerializeToString(deterministic=True))
    return digest.hexdigest()[:_HASH_CHARS]
