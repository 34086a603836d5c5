"""Spellings of listed strings: all say the string, and those of common programs are among them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang_grammars.conformance import Judge, accepts
from rtlang_grammars.machine.json_spellings import string_spellings
from rtlang_grammars.schema.options import SchemaOptions

TEXTS = st.text(st.sampled_from('ab/\\"é😀\n\x1fuU0') | st.characters(exclude_categories=["Cs"]), max_size=8)


@given(TEXTS)
def test_every_spelling_says_the_string(text: str) -> None:
    found = string_spellings(text)
    assert {json.loads(each) for each in found} == {text}
    assert {json.dumps(text).encode(), json.dumps(text, ensure_ascii=False).encode()} <= found


@pytest.mark.parametrize(
    "spelling", ["a/é", r"a/\u00e9", r"a/\u00E9", r"a\/é", r"a\/\u00e9", r"a\/\u00E9"], ids=lambda text: text
)
@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"enum": ["a/é", "b"]}, '"{}"'),
        ({"properties": {"a/é": {"type": "null"}}, "additionalProperties": False}, '{{"{}": null}}'),
        ({"properties": {"a/é": {"type": "null"}}, "required": ["a/é"], "type": "object"}, '{{"x": 1, "{}": null}}'),
        ({"items": {"enum": ["a/é", 1]}, "uniqueItems": True}, '[1, "{}"]'),
    ],
    ids=str,
)
def test_listed_strings_and_names_are_read_in_every_spelling(schema: Any, form: str, spelling: str) -> None:
    grammar = Judge().compile(schema, SchemaOptions())
    assert accepts(grammar, form.format(spelling))
    assert not accepts(grammar, form.format(spelling + "x").replace("null", "2"))
