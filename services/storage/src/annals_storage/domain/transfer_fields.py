"""Fields of the lines of an export: how they are written, and what an import accepts.

A value has one form in a file, so that equal things give equal bytes: a form that is not the one
we write is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from annals_common.validation import MAX_NESTING_LEVELS, nesting_levels

MAX_INTEGER = 2**53
"""Beyond it, JSON readers that know only doubles go wrong."""
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME_WANTED = "a time such as 2025-10-24T09:30:00.000000Z"
_DAY_WANTED = "a day such as 2025-10-24"
_HEX = re.compile(r"(?:[0-9a-f]{2})*")


class LineInvalidError(Exception):
    """A line cannot be stored. The message tells a person what to change."""


Check = Callable[[Any], Any]
"""Raises LineInvalidError, without the field's name."""


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a line and a column of a table, of the same name.

    `dump` writes a value as read from PostgreSQL; `check` judges a value of a file; `store` makes
    of it what PostgreSQL reads from JSON. An optional one is left out where there is no value.
    """

    name: str
    check: Check
    required: bool = True
    dump: Callable[[Any], Any] = lambda value: value
    store: Callable[[Any], Any] = lambda value: value


def _refuse(wanted: str) -> LineInvalidError:
    return LineInvalidError(f"must be {wanted}")


def _matching(pattern: re.Pattern[str], wanted: str) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise _refuse(wanted)

    return check


def uuid(name: str, *, required: bool = True) -> Field:
    """Return a field of a UUID in canonical form."""
    return Field(name, _matching(_UUID, "a UUID in lower case"), required, dump=str)


def uuids(name: str, *, max_items: int) -> Field:
    """Return a field of UUIDs."""
    check = _list(_matching(_UUID, "UUIDs in lower case"), max_items)
    return Field(name, check, dump=lambda values: [str(value) for value in values])


def text(name: str, max_chars: int, *, required: bool = True, min_chars: int = 0) -> Field:
    """Return a field of a text limited in characters."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not min_chars <= len(value) <= max_chars:
            raise _refuse(f"a text of {min_chars}–{max_chars:,} characters")

    return Field(name, check, required)


def long_text(name: str, max_bytes: int, *, required: bool = True) -> Field:
    """Return a field of a text limited by its size as UTF-8."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value.encode()) > max_bytes:
            raise _refuse(f"a text of at most {max_bytes:,} bytes")

    return Field(name, check, required)


def texts(name: str, *, max_items: int, max_chars: int) -> Field:
    """Return a field of texts."""
    return Field(name, _list(text(name, max_chars, min_chars=1).check, max_items), dump=list)


def integer(name: str, *, low: int = 0, high: int = MAX_INTEGER, required: bool = True) -> Field:
    """Return a field of a whole number."""
    return Field(name, _integer(low, high), required)


def integers(name: str, *, max_items: int, high: int) -> Field:
    """Return a field of whole numbers from 0."""
    return Field(name, _list(_integer(0, high), max_items), dump=list)


def _integer(low: int, high: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _refuse(f"a whole number between {low:,} and {high:,}")

    return check


def fraction(name: str, *, required: bool = True) -> Field:
    """Return a field of a number from 0 to 1."""

    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _refuse("a number between 0 and 1")

    return Field(name, check, required, dump=float)


def flag(name: str) -> Field:
    """Return a field of true or false."""

    def check(value: Any) -> None:
        if not isinstance(value, bool):
            raise _refuse("true or false")

    return Field(name, check)


def choice(name: str, values: Iterable[str], *, required: bool = True) -> Field:
    """Return a field of one of some words."""
    known = frozenset(values)

    def check(value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise _refuse(f"one of {', '.join(sorted(known))}")

    return Field(name, check, required, dump=str)


def time(name: str, *, required: bool = True) -> Field:
    """Return a field of a moment, in UTC and to the microsecond."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not _TIME.fullmatch(value):
            raise _refuse(_TIME_WANTED)
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise _refuse(_TIME_WANTED) from error

    return Field(name, check, required, dump=written_time)


def written_time(value: datetime) -> str:
    """Return the moment in UTC and to the microsecond."""
    utc = value.astimezone(UTC).isoformat(timespec="microseconds")
    return f"{utc.removesuffix('+00:00')}Z"


def day(name: str) -> Field:
    """Return a field of a day."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            raise _refuse(_DAY_WANTED)
        try:
            date.fromisoformat(value)
        except ValueError as error:
            raise _refuse(_DAY_WANTED) from error

    return Field(name, check, dump=date.isoformat)


def digest(name: str, *, required: bool = True) -> Field:
    """Return a field of a hash in hexadecimal digits."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value) > 64 or not _HEX.fullmatch(value):
            raise _refuse("a hash of at most 64 lower-case hexadecimal digits")

    return Field(name, check, required, dump=lambda v: bytes(v).hex(), store=lambda v: f"\\x{v}")


def binary(name: str, *, max_bytes: int, required: bool = True) -> Field:
    """Return a field of bytes in base 64."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value) > max_bytes * 2:
            raise _refuse(f"at most {max_bytes:,} bytes in base 64")
        try:
            decoded = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise _refuse("bytes in base 64") from error
        if len(decoded) > max_bytes or base64.b64encode(decoded).decode() != value:
            raise _refuse(f"at most {max_bytes:,} bytes in canonical base 64")

    return Field(
        name,
        check,
        required,
        dump=lambda v: base64.b64encode(bytes(v)).decode(),
        store=lambda v: f"\\x{base64.b64decode(v).hex()}",
    )


def document(
    name: str,
    *,
    max_bytes: int,
    required: bool = True,
    check: Check | None = None,
) -> Field:
    """Return a field of the tenant's own JSON object."""

    def judge(value: Any) -> None:
        if not isinstance(value, dict):
            raise _refuse("an object")
        if len(json.dumps(value)) > max_bytes:
            raise _refuse(f"an object of at most {max_bytes:,} bytes")
        if nesting_levels(value) > MAX_NESTING_LEVELS:
            raise _refuse(f"an object of at most {MAX_NESTING_LEVELS} levels")
        if check is not None:
            check(value)

    return Field(name, judge, required, dump=_plain_numbers)


def _plain_numbers(value: Any) -> Any:
    """Undo what PostgreSQL makes of 1e+300: a whole number of three hundred digits."""
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        return float(value)
    return value


def _list(check_item: Check, max_items: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, list) or len(value) > max_items:
            raise _refuse(f"a list of at most {max_items:,} items")
        for item in value:
            check_item(item)

    return check


def is_uuid(value: str) -> bool:
    """Whether a text is a UUID in canonical form."""
    return _UUID.fullmatch(value) is not None
