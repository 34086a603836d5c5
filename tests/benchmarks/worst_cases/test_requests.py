"""What a case sends."""

from __future__ import annotations

from rtlang_bench.worst_cases.requests import Case, Frames, HttpRequest


def test_the_bytes_of_a_case_are_those_of_its_bodies() -> None:
    requests = (HttpRequest("POST", "/a", b"123"), HttpRequest("GET", "/b"), Frames("rtlang.v1.json", ({"t": "bye"},)))
    assert Case(1, "route", "a", requests).num_bytes == 3
