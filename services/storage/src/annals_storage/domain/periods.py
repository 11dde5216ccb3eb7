"""Stretches of calendar time: "this_week", "2025-W43", "2025-10-01/2025-10-15"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

ACCEPTED = (
    "must be today, yesterday, this_week, this_month, this_year, a day (2025-10-24), a week "
    "(2025-W43), a month (2025-10), a year (2025), or a range of two days, months or moments "
    "(2025-10-01/2025-10-15)"
)
ONE_DAY, ONE_WEEK = timedelta(days=1), timedelta(weeks=1)


class PeriodInvalidError(ValueError):
    """Not a period; the message says what is."""


class ZoneUnknownError(ValueError):
    """Not a time zone of the IANA database."""


@dataclass(frozen=True, slots=True)
class Period:
    """Moments in UTC with start <= moment < end."""

    start: datetime
    end: datetime


Days = tuple[date, date]
"""The first day of a stretch and the first one after it."""


def find_zone(name: str) -> tzinfo:
    """Return the zone of an IANA name. Raises ZoneUnknownError."""
    try:
        return ZoneInfo(name)
    # Names of folders, overlong names and names that leave the database fail each in their way.
    except (ValueError, KeyError, OSError) as error:
        raise ZoneUnknownError(name) from error


def parse_period(text: str, zone: tzinfo, now: datetime) -> Period:
    """Return what a period means in a time zone, `now` being an aware moment.

    Days begin at their first moment in the zone and may have 23 or 25 hours; weeks begin on
    Monday. Raises PeriodInvalidError.
    """
    try:
        period = _parse(text, zone, now.astimezone(zone).date())
    # Days that no calendar has, and those outside the years 1 to 9999.
    except (ValueError, OverflowError) as error:
        raise PeriodInvalidError(ACCEPTED) from error
    if period.start >= period.end:
        raise PeriodInvalidError("must end after it begins")
    return period


def _parse(text: str, zone: tzinfo, today: date) -> Period:
    if named := _NAMED.get(text):
        return _period(named(today), zone)
    first, slash, last = text.partition("/")
    if not slash:
        return _period(_days(text), zone)
    if _MOMENT.fullmatch(first) and _MOMENT.fullmatch(last):
        return Period(_moment(first, zone), _moment(last, zone))
    if _kind(first) != _kind(last) or _kind(first) not in _RANGED:
        raise ValueError(text)
    return _period((_days(first)[0], _days(last)[1]), zone)


def _period(days: Days, zone: tzinfo) -> Period:
    start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in days)
    return Period(start, end)


def _moment(text: str, zone: tzinfo) -> datetime:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def _kind(text: str) -> re.Pattern[str] | None:
    return next((pattern for pattern in _CALENDAR if pattern.fullmatch(text)), None)


def _days(text: str) -> Days:
    pattern = _kind(text)
    if pattern is None:
        raise ValueError(text)
    return _CALENDAR[pattern](*map(int, re.findall("[0-9]+", text)))


def _day(year: int, month: int, day: int) -> Days:
    first = date(year, month, day)
    return first, first + ONE_DAY


def _week(year: int, week: int) -> Days:
    monday = date.fromisocalendar(year, week, 1)
    return monday, monday + ONE_WEEK


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WEEK = re.compile(r"[0-9]{4}-W[0-9]{2}")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_YEAR = re.compile(r"[0-9]{4}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_CALENDAR: dict[re.Pattern[str], Callable[..., Days]] = {
    _DAY: _day,
    _WEEK: _week,
    _MONTH: _month,
    _YEAR: _year,
}
_RANGED = (_DAY, _MONTH)
_NAMED: dict[str, Callable[[date], Days]] = {
    "today": lambda today: (today, today + ONE_DAY),
    "yesterday": lambda today: (today - ONE_DAY, today),
    "this_week": lambda today: _week(*today.isocalendar()[:2]),
    "this_month": lambda today: _month(today.year, today.month),
    "this_year": lambda today: _year(today.year),
}
