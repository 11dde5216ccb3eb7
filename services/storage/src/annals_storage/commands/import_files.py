"""Files of imports: received into a temporary file, unpacked, read line by line.

Whatever the file is, memory holds one line at a time, and what it may unpack to is bounded.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import AsyncIterator
from typing import IO, Any

from annals_common.errors import ImportInvalidError, LimitExceededError
from annals_storage.domain.transfer import Line, read
from annals_storage.domain.transfer_fields import LineInvalidError

MEBIBYTE = 1024 * 1024
MAX_PART_BYTES = MEBIBYTE
MAX_FILE_BYTES = 1024 * MEBIBYTE
MAX_UNPACKED_BYTES = 4 * 1024 * MEBIBYTE
MAX_UNPACKED_RATIO = 200
FREE_UNPACKED_BYTES = MEBIBYTE
"""So much may be unpacked whatever the ratio."""
MAX_LINE_BYTES = 32 * MEBIBYTE
MAX_DEPTH = 64
MAX_KEYS = 10_000
MAX_DIGITS = 20
_GZIP = b"\x1f\x8b"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


async def receive(parts: AsyncIterator[bytes], spool: IO[bytes]) -> None:
    """Write the parts of a file. Raises LimitExceededError."""
    total = 0
    async for part in parts:
        if len(part) > MAX_PART_BYTES:
            raise LimitExceededError("data", limit=MAX_PART_BYTES, actual=len(part), unit="bytes")
        total += len(part)
        if total > MAX_FILE_BYTES:
            raise LimitExceededError("data", limit=MAX_FILE_BYTES, actual=total, unit="bytes")
        spool.write(part)


class LineReader:
    """The lines of a received file, packed by gzip or not. Raises ImportInvalidError."""

    def __init__(self, spool: IO[bytes]) -> None:
        packed_bytes = spool.seek(0, 2)
        spool.seek(0)
        self._is_packed = spool.read(len(_GZIP)) == _GZIP
        spool.seek(0)
        self._file: Any = gzip.GzipFile(fileobj=spool, mode="rb") if self._is_packed else spool
        self._left = self._most(packed_bytes)
        self.number = 0

    def next_line(self) -> tuple[Line, int] | None:
        """Return the next line and its bytes; None at the end."""
        raw = self._read_raw()
        if not raw:
            return None
        self.number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise self._invalid(f"has more than {MAX_LINE_BYTES:,} bytes")
        try:
            return read(_parsed(raw), self.number), len(raw)
        except LineInvalidError as error:
            raise self._invalid(str(error)) from error

    def _most(self, packed_bytes: int) -> int:
        if not self._is_packed:
            return MAX_FILE_BYTES
        by_ratio = max(FREE_UNPACKED_BYTES, packed_bytes * MAX_UNPACKED_RATIO)
        return min(MAX_UNPACKED_BYTES, by_ratio)

    def _read_raw(self) -> bytes:
        try:
            raw: bytes = self._file.readline(min(MAX_LINE_BYTES, self._left) + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.number += 1
            raise self._invalid(f"cannot be unpacked: {error}; send the whole file") from error
        self._left -= len(raw)
        if self._left < 0:
            self.number += 1
            raise self._invalid(
                f"unpacks to more than {MAX_UNPACKED_RATIO} times its size, or to more than "
                f"{MAX_UNPACKED_BYTES:,} bytes; send it unpacked, or in several files"
            )
        return raw

    def _invalid(self, cause: str) -> ImportInvalidError:
        return ImportInvalidError(cause, line=self.number)


def _parsed(raw: bytes) -> Any:
    """Parse a line. Raises LineInvalidError for what is not JSON, or too deep, or too wide."""
    try:
        parsed = json.loads(
            raw.decode(),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except UnicodeDecodeError as error:
        raise LineInvalidError("is not UTF-8") from error
    except RecursionError as error:
        raise LineInvalidError(f"is nested deeper than {MAX_DEPTH} levels") from error
    except json.JSONDecodeError as error:
        raise LineInvalidError(
            f"is not JSON: {error.msg} at character {error.colno}; is the file whole?"
        ) from error
    if _SURROGATE_ESCAPE.search(raw):
        _refuse_surrogates(parsed)
    _check_nesting(parsed)
    return parsed


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise LineInvalidError(f"has an object of more than {MAX_KEYS:,} members")
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LineInvalidError("has an object with a member named twice")
    return found


def _constant(name: str) -> Any:
    raise LineInvalidError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise LineInvalidError(f"has a whole number of more than {MAX_DIGITS} digits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise LineInvalidError("has a number too large to keep")
    return value


def _refuse_surrogates(parsed: Any) -> None:
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise LineInvalidError("has half of a surrogate pair in a text") from error


def _check_nesting(parsed: Any) -> None:
    """Refuse what is too deep, and NUL characters, which PostgreSQL cannot keep."""
    level = [parsed]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _within(value)]
        if not level:
            return
    raise LineInvalidError(f"is nested deeper than {MAX_DEPTH} levels")


def _within(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, str) and "\x00" in value:
        raise LineInvalidError("has a NUL character in a text")
    return []
