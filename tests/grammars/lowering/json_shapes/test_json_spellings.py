"""Spellings of listed strings: all say the string, and those of common programs are among them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang_grammars.lowering.json_shapes.json_spellings import string_spellings
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars_bench.conformance import Judge, accepts

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


HALVES = ["\ud800", "a\udfffé", "\ude00\ud83d"]


@pytest.mark.parametrize("text", HALVES, ids=ascii)
def test_half_a_character_is_said_by_an_escape_alone(text: str) -> None:
    found = string_spellings(text)
    assert json.dumps(text).encode() in found
    assert {json.loads(each.decode()) for each in found} == {text}


@pytest.mark.parametrize("text", HALVES, ids=ascii)
@pytest.mark.parametrize(
    "schema",
    [
        {"const": "?"},
        {"enum": ["?", 1]},
        {"const": {"?": 1}},
        {"type": "object", "required": ["?"], "properties": {"?": {"const": 1}}},
        {"type": "object", "required": ["?"]},
    ],
    ids=str,
)
def test_schemas_with_half_a_character_allow_text_alone_that_is_utf_8(schema: Any, text: str) -> None:
    source = json.dumps(schema).replace("?", json.dumps(text)[1:-1])
    compiled = Judge().compile(json.loads(source), SchemaOptions())
    matcher = compiled.matcher()
    closing = matcher.closing_bytes()
    assert closing is not None
    value = json.loads(closing.decode())
    assert text in json.dumps(value, ensure_ascii=False) or value == 1
    assert accepts(compiled, closing.decode())
    if "const" in schema:
        raw = json.dumps(schema["const"], ensure_ascii=False, separators=(",", ":")).replace("?", text)
        assert not compiled.matcher().completes_bytes(raw.encode("utf-8", "surrogatepass"))


def test_a_declared_name_of_half_a_character_is_no_other_name() -> None:
    schema = {"properties": {"\ud800": {"type": "null"}}, "type": "object"}
    compiled = Judge().compile(schema, SchemaOptions())
    assert accepts(compiled, '{"\\ud800": null, "b": 1}')
    assert not accepts(compiled, '{"\\ud800": 1}')
    assert not accepts(compiled, '{"\\uD800": 1}')
