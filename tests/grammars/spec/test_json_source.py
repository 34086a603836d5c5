"""What is wrong with a JSON text is said with its place."""

from __future__ import annotations

import json

import pytest

from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.json_source import parsed


@pytest.mark.parametrize("source", ['{"a": [1, 2.5e3, "é", null, true]}', "0", ' "\\ud83d\\ude00" ', "9" * 400])
def test_json_is_read_as_json(source: str) -> None:
    assert parsed(source) == json.loads(source)


@pytest.mark.parametrize(
    ("source", "message", "location"),
    [
        ("", "not JSON", "1:1"),
        ('{"a": 1,\n "b" 2}', "not JSON", "2:6"),
        ("[" * 100_000, "nested too deeply", "1:100000"),
        ('["]]", \n' + '{"a":' * 100_000 + "1", "nested too deeply", "2:499996"),
        ('{"a":\n [NaN]}', "NaN is not a JSON number", "#"),
        ("-Infinity", "-Infinity is not a JSON number", "#"),
        ('{"a":\n  ' + "9" * 5000 + "}", "400 digits", "2:3"),
        ("-" + "9" * 5000, "400 digits", "1:2"),
    ],
    ids=["empty", "no colon", "deep", "deep and broken", "nan", "infinity", "long", "long and negative"],
)
def test_what_is_none_is_refused_with_its_place(source: str, message: str, location: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parsed(source)
    assert message in caught.value.reason
    assert caught.value.location == location
