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
from typing import Any

from annals_common.errors import FieldInvalidError
from annals_common.validation import MAX_NESTING_LEVELS, nesting_levels, plain_text

MAX_INTEGER = 2**53
"""Beyond it, JSON readers that know only doubles go wrong."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f]*")
HASH_BYTES = 16
"""Of what callers said."""
SHA256_BYTES = 32


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


def refused(wanted: str) -> LineInvalidError:
    """Return the error of a value that is not what is wanted."""
    return LineInvalidError(f"must be {wanted}")


def _matching(pattern: re.Pattern[str], wanted: str) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise refused(wanted)

    return check


def uuid(name: str, *, required: bool = True) -> Field:
    """Return a field of a UUID in canonical form."""
    return Field(name, _matching(_UUID, "a UUID in lower case"), required, dump=str)


def uuids(name: str, *, max_items: int) -> Field:
    """Return a field of UUIDs."""
    check = _list(_matching(_UUID, "UUIDs in lower case"), max_items)
    return Field(name, check, dump=lambda values: [str(value) for value in values])


def text(name: str, max_chars: int, *, required: bool = True, min_chars: int = 0) -> Field:
    """Return a field of a text limited in characters; an optional one is not empty."""
    low = min_chars if required else max(min_chars, 1)

    def check(value: Any) -> None:
        if not isinstance(value, str) or not low <= len(value) <= max_chars:
            raise refused(f"a text of {low}–{max_chars:,} characters")

    return Field(name, check, required)


def plain(name: str, max_chars: int) -> Field:
    """Return an optional field of a text without control characters."""
    limited = text(name, max_chars, required=False)

    def check(value: Any) -> None:
        limited.check(value)
        try:
            plain_text(value, name, max_chars=max_chars)
        except FieldInvalidError as error:
            raise LineInvalidError(error.violations[0].description) from error

    return Field(name, check, required=False)


def long_text(name: str, max_bytes: int, *, required: bool = True) -> Field:
    """Return a field of a text limited by its size as UTF-8."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value.encode()) > max_bytes:
            raise refused(f"a text of at most {max_bytes:,} bytes")

    return Field(name, check, required)


def texts(name: str, *, max_items: int, max_chars: int) -> Field:
    """Return a field of texts, none of them twice."""
    check_list = _list(text(name, max_chars, min_chars=1).check, max_items)

    def check(value: Any) -> None:
        check_list(value)
        if len(set(value)) != len(value):
            raise LineInvalidError("must not hold a text twice")

    return Field(name, check, dump=list)


def integer(name: str, *, low: int = 0, high: int = MAX_INTEGER, required: bool = True) -> Field:
    """Return a field of a whole number."""
    return Field(name, _integer(low, high), required)


def integers(name: str, *, max_items: int, high: int) -> Field:
    """Return a field of whole numbers from 0."""
    return Field(name, _list(_integer(0, high), max_items), dump=list)


def _integer(low: int, high: int) -> Check:
    def check(value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise refused(f"a whole number between {low:,} and {high:,}")

    return check


def fraction(name: str, *, required: bool = True) -> Field:
    """Return a field of a number from 0 to 1."""

    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise refused("a number between 0 and 1")

    return Field(name, check, required, dump=float)


def flag(name: str) -> Field:
    """Return a field of true or false."""

    def check(value: Any) -> None:
        if not isinstance(value, bool):
            raise refused("true or false")

    return Field(name, check)


def choice(name: str, values: Iterable[str], *, required: bool = True) -> Field:
    """Return a field of one of some words."""
    known = frozenset(values)

    def check(value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise refused(f"one of {', '.join(sorted(known))}")

    return Field(name, check, required, dump=str)


def digest(name: str, *sizes: int, required: bool = True) -> Field:
    """Return a field of a hash in hexadecimal digits, of one of some sizes in bytes."""
    wanted = (
        f"a hash of {' or '.join(str(2 * size) for size in sizes)} lower-case hexadecimal digits"
    )

    def check(value: Any) -> None:
        _hexadecimal(value, sizes, wanted)

    return Field(name, check, required, dump=lambda v: bytes(v).hex(), store=lambda v: f"\\x{v}")


def digits(name: str, size: int) -> Field:
    """Return a field of a hash that is kept as its hexadecimal digits; empty without one."""

    def check(value: Any) -> None:
        _hexadecimal(value, (0, size), f"empty or {2 * size} lower-case hexadecimal digits")

    return Field(name, check)


def _hexadecimal(value: Any, sizes: Iterable[int], wanted: str) -> None:
    known = isinstance(value, str) and len(value) in {2 * size for size in sizes}
    if not known or not _HEX.fullmatch(value):
        raise refused(wanted)


def binary(name: str, *, max_bytes: int, required: bool = True) -> Field:
    """Return a field of bytes in base 64."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or len(value) > max_bytes * 2:
            raise refused(f"at most {max_bytes:,} bytes in base 64")
        try:
            decoded = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise refused("bytes in base 64") from error
        if len(decoded) > max_bytes or base64.b64encode(decoded).decode() != value:
            raise refused(f"at most {max_bytes:,} bytes in canonical base 64")

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
            raise refused("an object")
        if len(json.dumps(value)) > max_bytes:
            raise refused(f"an object of at most {max_bytes:,} bytes")
        if nesting_levels(value) > MAX_NESTING_LEVELS:
            raise refused(f"an object of at most {MAX_NESTING_LEVELS} levels")
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
            raise refused(f"a list of at most {max_items:,} items")
        for item in value:
            check_item(item)

    return check


def is_uuid(value: str) -> bool:
    """Whether a text is a UUID in canonical form."""
    return _UUID.fullmatch(value) is not None
