"""Patterns of dates and times: just the texts that Python reads."""

from __future__ import annotations

import datetime
import re

import pytest

from rtlang.lang.output_types.schemas.date_patterns import DATE, TIME


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1900, 2000, 2023, 2024, 2100, 9999])
def test_the_days_of_a_year_are_those_of_the_calendar(year: int) -> None:
    for month in range(14):
        for day in range(33):
            try:
                datetime.date(year, month, day)
                is_day = True
            except ValueError:
                is_day = False
            assert (re.fullmatch(DATE, f"{year:04}-{month:02}-{day:02}") is not None) == is_day


def test_there_is_no_year_nought() -> None:
    assert re.fullmatch(DATE, "0000-01-01") is None


def test_hours_minutes_and_seconds_end_where_they_do() -> None:
    assert [hour for hour in range(30) if re.fullmatch(TIME, f"{hour:02}:00:59")] == list(range(24))
    assert not any(re.fullmatch(TIME, text) for text in ("12:60:00", "12:00:60", "1:00:00", "12:00"))
