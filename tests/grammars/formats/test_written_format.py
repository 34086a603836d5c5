"""Formats as names: every format survives, and malformed names are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtlang_grammars import GrammarError
from rtlang_grammars.formats.catalogue import FORMATS, format_named
from rtlang_grammars.formats.written_format import format_from_name, written_name

_LEFT_OUT = {
    "has_line_before_calls": False,
    "has_name_in_trigger": False,
    "closing_is_optional": False,
    "listed_id": "",
    "content_begins": (),
    "answer": None,
}
"""What a measured format never has."""


def test_every_format_survives_as_a_name() -> None:
    for found in FORMATS.values():
        name = written_name(found)
        assert format_from_name(name) == replace(found, name=name, **_LEFT_OUT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "measured:",
        "measured:3",
        "measured:{}",
        'measured:{"call":[],"around":[],"between":null,"arguments":"JSON"}',
        'measured:{"call":[["a",{"slot":"NAME"}]],"around":[[[],[]]],"between":null,"arguments":"JSON"}',
        'measured:{"call":[["a",{"slot":"X"}]],"around":[[[],[]]],"between":null,"arguments":"JSON"}',
        "measured:" + "[" * 9000,
    ],
)
def test_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(GrammarError, match="the name"):
        format_named(name)
