"""What periods mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain.periods import (
    Period,
    PeriodInvalidError,
    ZoneUnknownError,
    find_zone,
    parse_period,
)

ZURICH = ZoneInfo("Europe/Zurich")
NOON = datetime(2025, 10, 24, 12, tzinfo=UTC)
"""A Friday."""


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("today", "2025-10-24", "2025-10-25"),
        ("yesterday", "2025-10-23", "2025-10-24"),
        ("this_week", "2025-10-20", "2025-10-27"),
        ("this_month", "2025-10-01", "2025-11-01"),
        ("this_year", "2025-01-01", "2026-01-01"),
        ("2025-10-24", "2025-10-24", "2025-10-25"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2025-W43", "2025-10-20", "2025-10-27"),
        ("2020-W53", "2020-12-28", "2021-01-04"),
        ("2025-W01", "2024-12-30", "2025-01-06"),
        ("2025-10", "2025-10-01", "2025-11-01"),
        ("2025-12", "2025-12-01", "2026-01-01"),
        ("2025", "2025-01-01", "2026-01-01"),
        ("2025-10-01/2025-10-15", "2025-10-01", "2025-10-16"),
        ("2025-10-01/2025-10-01", "2025-10-01", "2025-10-02"),
        ("2025-11/2026-01", "2025-11-01", "2026-02-01"),
        ("2025-10-01T08:00/2025-10-01T09:30:15.5", "2025-10-01T08:00", "2025-10-01T09:30:15.5"),
        ("2025-10-01T08:00Z/2025-10-01T09:00-01:00", "2025-10-01T08:00", "2025-10-01T10:00"),
    ],
)
def test_in_utc(text: str, start: str, end: str) -> None:
    assert parse_period(text, UTC, NOON) == Period(utc(start), utc(end))


@pytest.mark.parametrize(
    ("text", "zone", "start", "end", "hours"),
    [
        ("2025-10-26", "Europe/Zurich", "2025-10-25T22:00", "2025-10-26T23:00", 25),
        ("2025-03-30", "Europe/Zurich", "2025-03-29T23:00", "2025-03-30T22:00", 23),
        ("2025-W13", "Europe/Zurich", "2025-03-23T23:00", "2025-03-30T22:00", 167),
        # Midnight does not exist: the day begins at one o'clock.
        ("2024-09-08", "America/Santiago", "2024-09-08T04:00", "2024-09-09T03:00", 23),
        # Midnight comes twice: the day begins with the first.
        ("2024-11-03", "America/Havana", "2024-11-03T04:00", "2024-11-04T05:00", 25),
        ("2025-10-24", "Asia/Kathmandu", "2025-10-23T18:15", "2025-10-24T18:15", 24),
        # The day that Samoa left out has no moments.
        ("2011-12-29/2011-12-31", "Pacific/Apia", "2011-12-29T10:00", "2011-12-31T10:00", 48),
    ],
)
def test_days_follow_the_zone(text: str, zone: str, start: str, end: str, hours: int) -> None:
    period = parse_period(text, ZoneInfo(zone), NOON)

    assert period == Period(utc(start), utc(end))
    assert period.end - period.start == timedelta(hours=hours)


def test_moments_without_an_offset_are_the_zones() -> None:
    period = parse_period("2025-10-26T00:00/2025-10-26T12:00", ZURICH, NOON)

    assert period == Period(utc("2025-10-25T22:00"), utc("2025-10-26T11:00"))


@pytest.mark.parametrize(
    ("now", "day"),
    [("2025-10-23T21:59:59", "2025-10-23"), ("2025-10-23T22:00", "2025-10-24")],
)
def test_today_changes_at_the_zones_midnight(now: str, day: str) -> None:
    assert parse_period("today", ZURICH, utc(now)) == parse_period(day, ZURICH, NOON)


@pytest.mark.parametrize(
    "text",
    [
        "", "Today", " today", "tomorrow", "last_week", "2025-13", "2025-00", "2025-02-29",
        "2025-10-32", "2025-W54", "2025-W00", "2021-W53", "0000", "0000-01", "9999", "9999-12-31",
        "0001-01-01", "20251024", "2025-W43-5", "2025-10-24T12:00", "/", "2025-10-01/",
        "/2025-10-01", "2025-10-01/2025-11", "2025/2026", "2025-W01/2025-W02",
        "2025-10-01T08:00/2025-10-02", "2025-10-01T25:00/2025-10-02T00:00",
        "2025-10-01T08:00/2025-10-02T08:00+25:00", "2025-10-01/2025-10-02/2025-10-03", "２０２５",
        "2025-10-24\n", "-2025", "P1D",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_is_accepted(text: str) -> None:
    # West of Greenwich the year 1 begins late enough, east of it before the calendar does.
    zone = ZoneInfo("Asia/Tokyo")

    with pytest.raises(PeriodInvalidError, match="must be today, yesterday, this_week"):
        parse_period(text, zone, NOON)


@pytest.mark.parametrize(
    "text",
    [
        "2025-10-15/2025-10-14",
        "2025-11/2025-10",
        "2025-10-01T08:00/2025-10-01T08:00",
        "2025-10-01T08:00+02:00/2025-10-01T06:00Z",
    ],
)
def test_a_range_must_end_after_it_begins(text: str) -> None:
    with pytest.raises(PeriodInvalidError, match="must end after it begins"):
        parse_period(text, UTC, NOON)


@pytest.mark.parametrize(
    "name",
    ["Europe/Atlantis", "Europe", "../../etc/passwd", "/etc/passwd", "x" * 300, "a\x00b", ""],
)
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(ZoneUnknownError):
        find_zone(name)


@given(st.text(alphabet="0123456789-/:TWZ+.tody_hisweknary", max_size=40))
def test_any_text_is_a_period_or_refused(text: str) -> None:
    try:
        period = parse_period(text, ZURICH, NOON)
    except PeriodInvalidError:
        return
    assert period.start < period.end
