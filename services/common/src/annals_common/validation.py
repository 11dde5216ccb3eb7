"""Checks of request fields, the same in every handler. All raise FieldInvalidError or
LimitExceededError with the field's path.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID

from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from annals_common.errors import FieldInvalidError, LimitExceededError
from annals_common.settings import MAX_RESPONSE_BYTES

UUID_CHARS = 36
MAX_PAGE_SIZE = 1_000
DEFAULT_PAGE_SIZE = 100
MAX_NESTING_LEVELS = 24
"""Of a tenant's own data: each is three of the 100 levels that protobuf reads."""
NANOS_PER_SECOND = 1_000_000_000

T = TypeVar("T")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


def require_uuid(value: str, field: str) -> UUID:
    """Return the UUID in its canonical, hyphenated form."""
    if not value:
        raise FieldInvalidError(field, "is required: a UUID")
    try:
        parsed = UUID(value) if len(value) == UUID_CHARS else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise FieldInvalidError(field, "must be a UUID such as 0199c7a2-7d4e-7b1e-9c55-…", value)
    return parsed


def optional_uuid(value: str, field: str) -> UUID | None:
    """Return the UUID, or None when the field is empty."""
    return require_uuid(value, field) if value else None


def uuids(values: Sequence[str], field: str, *, max_items: int) -> tuple[UUID, ...]:
    """Return the UUIDs of a repeated field."""
    check_count(values, field, max_items=max_items)
    return tuple(require_uuid(value, f"{field}[{i}]") for i, value in enumerate(values))


def check_count(values: Sequence[Any], field: str, *, max_items: int) -> None:
    """Refuse a repeated field with too many items."""
    if len(values) > max_items:
        raise LimitExceededError(field, limit=max_items, actual=len(values), unit="items")


def check_response_size(response: Message, field: str) -> None:
    """Refuse an answer that gRPC would not carry; `field` is what to ask less of."""
    if (size := response.ByteSize()) > MAX_RESPONSE_BYTES:
        raise LimitExceededError(
            field, limit=MAX_RESPONSE_BYTES, actual=size, unit="bytes in the answer"
        )


def text(value: str, field: str, *, max_chars: int) -> str:
    """Return a text without NUL; it may be empty."""
    if len(value) > max_chars:
        raise LimitExceededError(field, limit=max_chars, actual=len(value), unit="characters")
    return _without_nul(value, field)


def require_text(value: str, field: str, *, max_chars: int) -> str:
    """Return a text without NUL and with at least one character."""
    if not value:
        raise FieldInvalidError(field, f"is required: 1–{max_chars:,} characters")
    return text(value, field, max_chars=max_chars)


def plain_text(value: str, field: str, *, max_chars: int) -> str:
    """Return a text without control characters and with at least one character."""
    require_text(value, field, max_chars=max_chars)
    if any(unicodedata.category(char) == "Cc" for char in value):
        raise FieldInvalidError(field, "must not contain control characters", value)
    return value


def long_text(value: str, field: str, *, max_bytes: int) -> str:
    """Return a text without NUL, limited by its size as UTF-8."""
    # A character takes one to four bytes: most texts need no encoding to be judged.
    if len(value) * 4 > max_bytes and (size := len(value.encode())) > max_bytes:
        raise LimitExceededError(field, limit=max_bytes, actual=size, unit="bytes")
    return _without_nul(value, field)


def _without_nul(value: str, field: str) -> str:
    if "\x00" in value:
        raise FieldInvalidError(field, "must not contain NUL characters", value)
    return value


def json_text(
    value: str, field: str, *, max_bytes: int, kind: type[list[Any] | dict[str, Any]] | None = None
) -> str:
    """Return a JSON text as it is; with `kind`, it must be an array (list) or an object (dict)."""
    long_text(value, field, max_bytes=max_bytes)
    try:
        parsed = _parse_json(value)
    except (ValueError, RecursionError) as error:
        raise FieldInvalidError(field, f"must be valid JSON: {error}", value) from error
    if kind is not None and not isinstance(parsed, kind):
        wanted = "array" if kind is list else "object"
        raise FieldInvalidError(field, f"must be a JSON {wanted}", value)
    return value


def _parse_json(value: str) -> Any:
    """Raises ValueError also for what Python takes and JSON, or UTF-8, does not."""
    # Numbers stay text: they are not looked at, and Python refuses long ones.
    parsed = json.loads(value, parse_constant=_refuse_constant, parse_int=str, parse_float=str)
    if _SURROGATE_ESCAPE.search(value):
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def struct(value: Struct, field: str, *, max_bytes: int) -> dict[str, Any]:
    """Return a Struct as a dict that PostgreSQL can keep."""
    if not value.fields:
        return {}
    try:
        result = json_format.MessageToDict(value)
        encoded = json.dumps(result, allow_nan=False)
    except (ValueError, json_format.Error) as error:
        raise FieldInvalidError(field, f"must be representable as JSON: {error}") from error
    if len(encoded) > max_bytes:
        raise LimitExceededError(field, limit=max_bytes, actual=len(encoded), unit="bytes")
    if "\\u0000" in encoded:
        raise FieldInvalidError(field, "must not contain NUL characters")
    if (levels := nesting_levels(result)) > MAX_NESTING_LEVELS:
        raise LimitExceededError(field, limit=MAX_NESTING_LEVELS, actual=levels, unit="levels")
    return result


def nesting_levels(value: Any) -> int:
    """Return how many objects and arrays stand one in the other; 0 for anything else."""
    levels, here = 0, [value]
    while here := [item for item in here if isinstance(item, dict | list)]:
        levels += 1
        here = [
            inner for item in here for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return levels


def timestamp(value: Timestamp, field: str) -> datetime:
    """Return an aware datetime in UTC, to the microsecond."""
    if not 0 <= value.nanos < NANOS_PER_SECOND:
        raise FieldInvalidError(field, "nanos must be 0–999,999,999", value.nanos)
    try:
        return value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise FieldInvalidError(
            field, "must lie between the years 1 and 9999", value.seconds
        ) from error


def enum(value: int, mapping: Mapping[int, T], field: str) -> T:
    """Map an enum's number; 0 and unknown numbers are refused."""
    if value not in mapping:
        wanted = f"one of {', '.join(_enum_name(number, mapping) for number in sorted(mapping))}"
        raise FieldInvalidError(
            field, f"must be {wanted}" if value else f"is required: {wanted}", value
        )
    return mapping[value]


def _enum_name(number: int, mapping: Mapping[int, object]) -> str:
    value = mapping[number]
    return f"{value.name} ({number})" if isinstance(value, Enum) else str(number)


def enums(values: Sequence[int], mapping: Mapping[int, T], field: str) -> tuple[T, ...]:
    """Map a repeated enum."""
    check_count(values, field, max_items=len(mapping) * 4)
    return tuple(enum(value, mapping, f"{field}[{i}]") for i, value in enumerate(values))


def bounded(value: float, field: str, *, low: float, high: float) -> None:
    """Refuse a number outside [low, high], NaN included."""
    if not low <= value <= high:
        raise FieldInvalidError(field, f"must be between {low:,} and {high:,}", value)


def page_size(value: int, default: int = DEFAULT_PAGE_SIZE) -> int:
    """Return how many rows to return; 0 means the default."""
    bounded(value, "page_size", low=0, high=MAX_PAGE_SIZE)
    return value or default
