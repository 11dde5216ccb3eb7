"""Fields of moments and days: what callers may name, and what clocks of servers told."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

from annals_storage.domain.transfer_fields import Field, LineInvalidError, refused

CLOCK_TOLERANCE = timedelta(days=1)
"""So far the clocks of two servers may differ."""
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME_WANTED = "a time such as 2025-10-24T09:30:00.000000Z"
_DAY_WANTED = "a day such as 2025-10-24"


def time(name: str, *, required: bool = True) -> Field:
    """Return a field of a moment that a caller may have named: of the years 1 to 9999."""
    return Field(name, _moment, required, dump=written_time)


def clock(name: str, *, required: bool = True) -> Field:
    """Return a field of a moment read from a server's clock, hence not in the future."""

    def check(value: Any) -> None:
        if _moment(value) > datetime.now(UTC) + CLOCK_TOLERANCE:
            raise LineInvalidError("must not lie in the future")

    return Field(name, check, required, dump=written_time)


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise refused(_TIME_WANTED)
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise refused(_TIME_WANTED) from error


def written_time(value: datetime) -> str:
    """Return the moment in UTC and to the microsecond."""
    utc = value.astimezone(UTC).isoformat(timespec="microseconds")
    return f"{utc.removesuffix('+00:00')}Z"


def day(name: str) -> Field:
    """Return a field of a day of a server's clock."""

    def check(value: Any) -> None:
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            raise refused(_DAY_WANTED)
        try:
            found = date.fromisoformat(value)
        except ValueError as error:
            raise refused(_DAY_WANTED) from error
        if found > (datetime.now(UTC) + CLOCK_TOLERANCE).date():
            raise LineInvalidError("must not lie in the future")

    return Field(name, check, dump=date.isoformat)
