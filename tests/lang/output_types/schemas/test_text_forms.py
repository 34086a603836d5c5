"""Forms of texts: every match is read by the type, and so is what people write."""

from __future__ import annotations

import base64
import ipaddress
import random
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from rtlang.lang.output_types.schemas.text_forms import (
    COMPLEX,
    REGEX,
    base64_pattern,
    form,
    hex_pattern,
    url_pattern,
    uuid_pattern,
)
from rtlang_grammars.regular.language import Language, compile_regex

READERS: list[tuple[str, Callable[[str], Any]]] = [
    ("ipv4", ipaddress.IPv4Address),
    ("ipv6", ipaddress.IPv6Address),
    ("ipv4network", ipaddress.IPv4Network),
    ("ipv6network", ipaddress.IPv6Network),
    ("ipv4interface", ipaddress.IPv4Interface),
    ("ipv6interface", ipaddress.IPv6Interface),
    ("regex", re.compile),
]


def language(pattern: str) -> Language:
    return compile_regex(f"^({pattern})$", mode="search")


@pytest.mark.parametrize(("name", "read"), READERS, ids=[name for name, _ in READERS])
def test_every_match_of_a_form_is_read(name: str, read: Callable[[str], Any]) -> None:
    pattern = form(name)
    assert pattern is not None
    for text in language(pattern).samples(random.Random(1), 60):
        read(text)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("ipv6", ["::", "::1", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8", "fe80::"]),
        ("ipv4network", ["10.0.0.0/8", "192.168.1.128/25", "0.0.0.0/0", "1.2.3.4/32"]),
        ("ipv6network", ["2001:db8::/32", "::/0", "fe80::/12", "::1/128"]),
        ("email", ["ann@example.org", "a.b+c@mail.example.co.uk"]),
        ("name-email", ["Ann Lee <ann@example.org>"]),
        ("color", ["red", "#fff", "rgb(1, 20, 255)"]),
        ("zoneinfo", ["Europe/Berlin", "UTC", "Etc/GMT+5"]),
        ("regex", [r"^[a-z]+\d*$", "(a|b)+c?", r"\w+@\w+\.org"]),
    ],
)
def test_what_people_write_is_of_the_form(name: str, texts: list[str]) -> None:
    pattern = form(name)
    assert pattern is not None
    assert [text for text in texts if not language(pattern).accepts(text)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ipv4network", "10.0.0.1/8"),
        ("ipv6", "1::2::3"),
        ("email", "a@localhost"),
        ("email", "a@b"),
        ("regex", "(a"),
        ("color", "rd"),
    ],
)
def test_what_the_type_refuses_is_not_of_the_form(name: str, text: str) -> None:
    pattern = form(name)
    assert pattern is not None
    assert not language(pattern).accepts(text)


def test_unknown_forms_have_no_pattern() -> None:
    assert form("binary") is None


@pytest.mark.parametrize("version", [None, 1, 4, 7, 8])
def test_uuids_have_their_version(version: int | None) -> None:
    for text in language(uuid_pattern(version)).samples(random.Random(1), 20):
        assert str(uuid.UUID(text)) == text
        assert version in (None, uuid.UUID(text).version)


@pytest.mark.parametrize("is_url", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0, None), (1, 1), (2, 5), (4, 4), (3, None)])
def test_base64_is_canonical_and_of_the_length(low: int, high: int | None, is_url: bool) -> None:
    pattern = language(base64_pattern(low, high, is_url=is_url))
    write = base64.urlsafe_b64encode if is_url else base64.b64encode
    for text in pattern.samples(random.Random(1), 30):
        found = base64.b64decode(text, b"-_" if is_url else None, validate=True)
        assert write(found).decode() == text
        assert low <= len(found) <= (len(found) if high is None else high)
    for size in range(low, 9 if high is None else high + 1):
        assert pattern.accepts(write(random.Random(size).randbytes(size)).decode())


def test_base64_of_text_is_text() -> None:
    pattern = language(base64_pattern(0, None, is_url=False, is_text=True))
    for text in pattern.samples(random.Random(2), 60):
        base64.b64decode(text).decode("ascii")
    assert all(pattern.accepts(base64.b64encode(text.encode()).decode()) for text in ("", "a", "Hi!", "plain text ~"))


def test_hexadecimal_bytes_are_counted_in_bytes() -> None:
    assert language(hex_pattern(1, 2)).accepts("00ff")
    assert not language(hex_pattern(1, 2)).accepts("")
    assert hex_pattern(2, 1) == ""


def test_urls_whose_length_counts_are_written_as_the_type_writes_them() -> None:
    pattern = language(url_pattern(["http", "https"], is_tight=True))
    assert pattern.accepts("https://example.org/a?b=c")
    assert not pattern.accepts("https://example.org")
    assert not pattern.accepts('https://example.org/"')


def test_numbers_are_read() -> None:
    for text in language(COMPLEX).samples(random.Random(3), 30):
        complex(text)
    assert REGEX
