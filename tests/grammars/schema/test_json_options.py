"""The options of servers for JSON, by the texts that the style allows and the values that the schema has."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from rtlang_grammars.schema.json_options import style_of, without_additional_properties
from rtlang_grammars.spec.constraint import Whitespace
from rtlang_grammars.spec.errors import GrammarError

FREE, COMPACT = Whitespace.FREE, Whitespace.COMPACT
PATTERNS = {
    None: FREE,
    r"[ \t\n\r]*": FREE,
    r"\s*": FREE,
    r"[ \n\t]{0,81}": FREE,
    "": COMPACT,
    " ?": COMPACT,
    r"[ \n]{0,2}": COMPACT,
}


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_pattern_means_the_widest_style_within_it(pattern: str | None) -> None:
    assert style_of(pattern).whitespace is PATTERNS[pattern]
    assert style_of(pattern, disable_any_whitespace=True).whitespace is COMPACT


@pytest.mark.parametrize(
    ("pattern", "message"),
    [(" +", "the empty text matches"), ("(", r"whitespace_pattern = '\('"), (r"\n", "no blanks")],
)
def test_other_patterns_are_refused_by_name(pattern: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        style_of(pattern)


OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
SCHEMAS: list[tuple[Any, list[Any], list[Any]]] = [
    (OBJECT, [{"a": 1}, {}], [{"b": 1}]),
    ({"items": OBJECT}, [[{"a": 1}], {"b": 1}], [[{"b": 1}]]),
    ({**OBJECT, "additionalProperties": True}, [{"a": 1, "b": 1}], [{"a": "x"}]),
    ({"type": "object"}, [{"b": 1}], [1]),
    ({"$defs": {"x": OBJECT}, "anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}, [{"a": 1}, None], [{"b": 1}]),
    ({"patternProperties": {"^p": OBJECT}}, [{"p": {"a": 1}}], [{"q": 1}, {"p": {"b": 1}}]),
    ({"enum": [{"properties": {"a": 1}}]}, [{"properties": {"a": 1}}], [1]),
    (True, [1], []),
]


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_objects_have_no_properties_but_the_declared_ones(number: int) -> None:
    schema, good, bad = SCHEMAS[number]
    for given in (schema, json.dumps(schema)):
        closed = jsonschema.Draft202012Validator(without_additional_properties(given))
        assert all(map(closed.is_valid, good))
        assert not any(map(closed.is_valid, bad))


def test_what_is_no_schema_is_refused() -> None:
    for bad in ("{", "3", "[]"):
        with pytest.raises(GrammarError, match="expected a JSON schema"):
            without_additional_properties(bad)
