"""The time a query asks about: "last week", "in May 2023", "on 3 March", "vor zwei Monaten".

Times are UTC. What a query says is never a filter: people remember times wrongly, and speak of
things days after they happened.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from annals_storage.domain import time_words as words

READ_CHARS = 500
"""Of a query. Longer ones hold pasted texts, whose dates nobody asks about."""
AFTERWARDS = timedelta(days=7)
"""How long after a time it is still spoken of, less and less."""
_DAY = timedelta(days=1)
_LENGTHS = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "year": 365 * _DAY}


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to before `end`."""

    start: datetime
    end: datetime

    def closeness(self, moment: datetime) -> float:
        """Return 1 inside, 0 before, and less and less afterwards."""
        if moment < self.start:
            return 0.0
        if moment < self.end:
            return 1.0
        return max(0.0, 1.0 - (moment - self.end) / AFTERWARDS)


@dataclass(frozen=True, slots=True)
class EveryYear:
    """A month, or a day of it, in whatever year."""

    month: int
    day: int | None

    def closeness(self, moment: datetime) -> float:
        """Return that of the latest such time that has begun by then."""
        years = (moment.year, moment.year - 1)
        return max((p.closeness(moment) for y in years for p in _named(y, self)), default=0.0)


Asked = Period | EveryYear


@dataclass(frozen=True, slots=True)
class AskedTime:
    """What a query says of a time. `relative`: it means nothing without a reference time."""

    pattern: str
    match: re.Match[str]
    days_ago: int = 0

    @property
    def is_relative(self) -> bool:
        """Whether it depends on the time of asking."""
        return self.pattern != "date"

    def at(self, reference: datetime) -> Asked | None:
        """Return the time that was meant at `reference`; None for one that does not exist."""
        with suppress(OverflowError):
            return self._at(reference)
        return None

    def _at(self, reference: datetime) -> Asked | None:
        today = reference.astimezone(UTC).date()
        if self.pattern == "date":
            return _dated(self.match)
        if self.pattern == "days_ago":
            return _days(today - self.days_ago * _DAY, 1)
        return _RELATIVE[self.pattern](self.match, today)


def asked_time(query: str) -> AskedTime | None:
    """Return the time a query asks about: the first of the most exact kind, or None."""
    text = _folded(query[:READ_CHARS])
    if words.TELLING.isdisjoint(words.WORD.findall(text)):
        return None
    return next(_found(text), None)


def _found(text: str) -> Iterator[AskedTime]:
    for name, patterns in _PATTERNS:
        yield from (AskedTime(name, found) for p in patterns if (found := p.search(text)))
        if name == "date":
            for days, pattern in words.DAYS_AGO.items():
                if found := pattern.search(text):
                    yield AskedTime("days_ago", found, days)


def _folded(text: str) -> str:
    """Return lower case without accents, one space between words."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(plain.casefold().replace("’", "'").split())


def _dated(match: re.Match[str]) -> Asked | None:
    said = match.groupdict()
    year = int(said["year"]) if said.get("year") else None
    named = EveryYear(_number(said["month"], words.MONTHS) if said.get("month") else 0, _day(said))
    if named.month > len(words.MONTHS) or (not named.month and year is None):
        return None
    if year is None:
        return named if next(_named(2_000, named), None) else None
    return next(_named(year, named), None)


def _named(year: int, named: EveryYear) -> Iterator[Period]:
    """Yield the day, the month or (month 0) the year; nothing for a day that does not exist."""
    try:
        if named.day is not None:
            yield _days(date(year, named.month, named.day), 1)
        elif named.month:
            yield _between(date(year, named.month, 1), _month_after(date(year, named.month, 1)))
        else:
            yield _between(date(year, 1, 1), date(year + 1, 1, 1))
    except ValueError:
        return


def _day(said: dict[str, str]) -> int | None:
    return int(said["day"]) if said.get("day") else None


def _number(word: str, named: dict[str, int]) -> int:
    return int(word) if word.isdigit() else named[word]


def _ago(match: re.Match[str], today: date) -> Asked | None:
    """Return a unit of time around the day that many units ago."""
    count, unit = _counted(match)
    middle = today - count * _LENGTHS[unit]
    half = (_LENGTHS[unit] // 2).days
    return _days(middle - half * _DAY, 2 * half + 1)


def _span(match: re.Match[str], today: date) -> Asked | None:
    count, unit = _counted(match)
    length = count * _LENGTHS[unit]
    return _between(today - length, today + _DAY)


def _last_unit(match: re.Match[str], today: date) -> Asked | None:
    start, _ = _unit_of(match["unit"], today)
    before, _ = _unit_of(match["unit"], start - _DAY)
    return _between(before, start)


def _this_unit(match: re.Match[str], today: date) -> Asked | None:
    return _between(*_unit_of(match["unit"], today))


def _weekday(match: re.Match[str], today: date) -> Asked | None:
    """Return the last such day before today."""
    ago = (today.isoweekday() - words.WEEKDAYS[match["weekday"]] - 1) % 7 + 1
    return _days(today - ago * _DAY, 1)


def _counted(match: re.Match[str]) -> tuple[int, str]:
    unit = words.UNITS[match["unit"]]
    return _number(match["count"], words.NUMBERS), "week" if unit == "weekend" else unit


def _unit_of(word: str, day: date) -> tuple[date, date]:
    """Return the beginning and the end of the day, week, month or year that holds a day."""
    unit = words.UNITS[word]
    if unit == "day":
        return day, day + _DAY
    if unit in ("week", "weekend"):
        monday = day - (day.isoweekday() - 1) * _DAY
        return monday, monday + 7 * _DAY
    if unit == "month":
        return day.replace(day=1), _month_after(day)
    return date(day.year, 1, 1), date(day.year, 12, 31) + _DAY


def _month_after(day: date) -> date:
    return (day.replace(day=28) + 4 * _DAY).replace(day=1)


def _days(first: date, count: int) -> Period:
    return _between(first, first + count * _DAY)


def _between(start: date, end: date) -> Period:
    return Period(*(datetime(d.year, d.month, d.day, tzinfo=UTC) for d in (start, end)))


_PATTERNS: tuple[tuple[str, Iterable[re.Pattern[str]]], ...] = (
    ("date", words.DATES),
    ("ago", words.AGO),
    ("span", words.SPANS),
    ("last_unit", words.LAST_UNIT),
    ("this_unit", words.THIS_UNIT),
    ("weekday", words.WEEKDAY),
)
_RELATIVE = {
    "ago": _ago,
    "span": _span,
    "last_unit": _last_unit,
    "this_unit": _this_unit,
    "weekday": _weekday,
}
