"""What a query says of a time, and which time that is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain.asked_times import Period, asked_time

WEDNESDAY = datetime(2023, 6, 14, 10, 30, tzinfo=UTC)
LAST_WEEK, MAY = ("2023-06-05", "2023-06-12"), ("2023-05-01", "2023-06-01")


def period(query: str, reference: datetime = WEDNESDAY) -> tuple[str, str] | None:
    """The first and the day after the last day asked for."""
    said = asked_time(query)
    found = said.at(reference) if said else None
    if found is None:
        return None
    assert isinstance(found, Period)
    assert found.start.hour == found.end.hour == 0
    return found.start.date().isoformat(), found.end.date().isoformat()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did Maria say in May 2023?", MAY),
        ("what happened on 3rd of March, 2022", ("2022-03-03", "2022-03-04")),
        ("the invoice of 2022-12-31", ("2022-12-31", "2023-01-01")),
        ("die Rechnung vom 3.12.2022", ("2022-12-03", "2022-12-04")),
        ("the trip in 2021", ("2021-01-01", "2022-01-01")),
        ("yesterday, what did I eat?", ("2023-06-13", "2023-06-14")),
        ("the day before yesterday", ("2023-06-12", "2023-06-13")),
        ("what did we decide today", ("2023-06-14", "2023-06-15")),
        ("last week", LAST_WEEK),
        ("this month", ("2023-06-01", "2023-07-01")),
        ("last year", ("2022-01-01", "2023-01-01")),
        ("three days ago", ("2023-06-11", "2023-06-12")),
        ("two weeks ago", ("2023-05-28", "2023-06-04")),
        ("in the past 3 days", ("2023-06-11", "2023-06-15")),
        ("last Wednesday", ("2023-06-07", "2023-06-08")),
        ("on Monday", ("2023-06-12", "2023-06-13")),
        ("Was war letzte Woche?", LAST_WEEK),
        ("vorgestern", ("2023-06-12", "2023-06-13")),
        ("vor drei Tagen", ("2023-06-11", "2023-06-12")),
        ("im März 2023", ("2023-03-01", "2023-04-01")),
        ("la semaine dernière", LAST_WEEK),
        ("il y a 3 jours", ("2023-06-11", "2023-06-12")),
        ("qu'a-t-il dit hier ?", ("2023-06-13", "2023-06-14")),
        ("en février 2023", ("2023-02-01", "2023-03-01")),
        ("el mes pasado", MAY),
        ("hace tres días", ("2023-06-11", "2023-06-12")),
        ("el 5 de mayo de 2023", ("2023-05-05", "2023-05-06")),
        ("o que eu disse ontem", ("2023-06-13", "2023-06-14")),
        ("semana passada", LAST_WEEK),
        ("há três dias", ("2023-06-11", "2023-06-12")),
    ],
)
def test_times(query: str, expected: tuple[str, str]) -> None:
    assert period(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "",
        "May I ask you something?",
        "How do they march on?",
        "Was habe ich hier gesagt?",
        "How many days ago did I buy a smoker?",
        "What is on the 31 February list?",
        "sept semaines",
        "Which Tuesdays are free?",
        "Room 2023b",
        "x" * 1_000 + " yesterday",
    ],
)
def test_no_time(query: str) -> None:
    assert period(query) is None


def test_a_date_without_a_year_is_that_day_of_any_year() -> None:
    said = asked_time("on 29 February")
    assert said is not None
    assert not said.is_relative
    asked = said.at(WEDNESDAY)
    assert asked is not None

    days = [date(2020, 2, 29), date(2024, 2, 29), date(2023, 2, 28), date(2024, 2, 28)]

    close = [asked.closeness(datetime(d.year, d.month, d.day, 9, tzinfo=UTC)) for d in days]
    assert close == [1, 1, 0, 0]


def test_closeness_fades_after_the_time_and_is_nothing_before() -> None:
    week = Period(datetime(2023, 6, 5, tzinfo=UTC), datetime(2023, 6, 12, tzinfo=UTC))
    hours = [-1, 0, 167, 168 + 84, 168 * 2, 10_000]

    close = [week.closeness(week.start + timedelta(hours=hour)) for hour in hours]

    assert close == [0, 1, 1, 0.5, 0, 0]


@pytest.mark.parametrize("day", [date(1, 1, 1), date(9999, 12, 31)])
@pytest.mark.parametrize(
    "query", ["999 years ago", "last year", "this month", "yesterday", "today"]
)
def test_at_the_ends_of_the_calendar_there_may_be_no_time(query: str, day: date) -> None:
    said = asked_time(query)
    assert said is not None

    said.at(datetime(day.year, day.month, day.day, tzinfo=UTC))


WORDS = ["last", "3", "31", "in", "May", "2023", "ago", "two", "weeks", "on", "12.", "0.", "hier"]


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.datetimes(timezones=st.just(UTC)))
def test_any_words_make_a_time_or_none(words: list[str], reference: datetime) -> None:
    said = asked_time(" ".join(words))
    found = said.at(reference) if said else None

    assert found is None or 0 <= found.closeness(WEDNESDAY) <= 1
