"""Formats, checked against the JSON Schema test suite, the `jsonschema` format checker and the calendar."""

from __future__ import annotations

import datetime
import gzip
import ipaddress
import json
import random
from typing import Any

import jsonschema
import pytest

from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.string_formats.formats import CHECKED_FORMATS, format_language
from tests.support.grammars.texts import SHARED

FORMATS = [
    *("date", "time", "date-time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
    *("uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer"),
]
SUITE = SHARED / "json-schema-test-suite" / "dev.jsonl.gz"


def _language(name: str) -> Language:
    language = format_language(name)
    assert language is not None
    return language


def _suite_groups() -> list[dict[str, Any]]:
    with gzip.open(SUITE, "rt", encoding="utf-8") as lines:
        return [group for group in map(json.loads, lines) if group["keyword"].startswith("format/")]


@pytest.mark.skipif(not SUITE.exists(), reason="the published test suite is not next to the checkout")
def test_the_json_schema_suite_passes_except_for_encoded_labels() -> None:
    num_tests = 0
    for group in _suite_groups():
        language = format_language(group["schema"].get("format", ""))
        if language is None:
            assert group["schema"]["format"] in {"unknown", *CHECKED_FORMATS}
            continue
        for test in group["tests"]:
            if isinstance(test["data"], str) and not test["data"].lower().startswith("xn--"):
                assert language.accepts(test["data"]) == test["valid"], (group["schema"]["format"], test["data"])
                num_tests += 1
    assert num_tests > 300


@pytest.mark.parametrize("name", sorted({*FORMATS} - {"time", "date-time", "uri-template", "relative-json-pointer"}))
def test_samples_pass_the_jsonschema_checker(name: str) -> None:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    for text in _language(name).samples(random.Random(5), 60):
        assert checker.conforms(text, name), text


def test_dates_agree_with_the_calendar() -> None:
    dates = _language("date")
    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9999):
        for month in range(14):
            for day in (0, 1, 28, 29, 30, 31, 32):
                try:
                    datetime.date(year, month, day)
                    is_date = True
                except ValueError:
                    is_date = False
                assert dates.accepts(f"{year:04}-{month:02}-{day:02}") is is_date
    assert not dates.accepts("0000-01-01")
    assert not dates.accepts("2024-1-01")


def test_leap_seconds_are_at_the_end_of_a_utc_day() -> None:
    times = _language("time")
    rng = random.Random(3)
    for _ in range(300):
        hour, minute = rng.randrange(24), rng.randrange(60)
        sign, offset_hour, offset_minute = rng.choice([1, -1]), rng.randrange(24), rng.randrange(60)
        if rng.random() < 0.5:  # make it one
            at = (23 * 60 + 59 + sign * (60 * offset_hour + offset_minute)) % 1440
            hour, minute = divmod(at, 60)
        in_utc = (60 * hour + minute - sign * (60 * offset_hour + offset_minute)) % 1440
        text = f"{hour:02}:{minute:02}:60{'+' if sign > 0 else '-'}{offset_hour:02}:{offset_minute:02}"
        assert times.accepts(text) is (in_utc == 23 * 60 + 59), text
    assert times.accepts("23:59:60Z")
    assert times.accepts("23:59:60.5z")
    assert not times.accepts("22:59:60Z")
    assert not times.accepts("23:59:61Z")
    assert _language("date-time").accepts("1990-12-31T15:59:60-08:00")
    assert not _language("date-time").accepts("1990-12-31 15:59:59Z")


def test_addresses_agree_with_ipaddress() -> None:
    rng = random.Random(11)
    version_6 = _language("ipv6")
    pieces = ["", "0", "1", "ffff", "12345", "g", "1.2.3.4", "1.2.3.256", "01.2.3.4", "ABcd"]
    for _ in range(1500):
        text = ":".join(rng.choice(pieces) for _ in range(rng.randint(1, 10)))
        try:
            ipaddress.IPv6Address(text)
            is_address = True
        except ValueError:
            is_address = False
        assert version_6.accepts(text) is is_address, text
    version_4 = _language("ipv4")
    for number in range(300):
        assert version_4.accepts(f"1.{number}.0.255") is (number < 256)
    assert not version_4.accepts("1.01.1.1")


@pytest.mark.parametrize("name", FORMATS)
def test_format_languages_are_cached(name: str) -> None:
    assert format_language(name) is _language(name)


@pytest.mark.parametrize("name", ["unknown", "int32", "", *CHECKED_FORMATS])
def test_unknown_formats_have_no_language(name: str) -> None:
    assert format_language(name) is None
