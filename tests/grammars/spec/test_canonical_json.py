"""One form of sources: what is laid out otherwise is the same, what says something else is not."""

from __future__ import annotations

import pytest

from rtlang_grammars.spec.canonical_json import canonical
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, Whitespace

SCHEMA, CHOICE = ConstraintKind.JSON_SCHEMA, ConstraintKind.CHOICE


@pytest.mark.parametrize(
    ("kind", "source", "other"),
    [
        (SCHEMA, '{"type":"string","maxLength":3}', '{ "type" : "string",\n\t"maxLength": 3 }'),
        (SCHEMA, '{"const":"\\u00fc/"}', '{"const": "ü\\/"}'),
        (SCHEMA, '{"const":"\\ud800"}', '{"const": "\\uD800"}'),
        (SCHEMA, '{"type":"null"}', '{"type": "string", "type": "null"}'),
        (SCHEMA, '{"maximum":1e+22}', '{"maximum": 1E22}'),
        (CHOICE, '["a","b"]', '[ "a", "\\u0062" ]'),
    ],
)
def test_what_says_the_same_has_one_form(kind: ConstraintKind, source: str, other: str) -> None:
    assert canonical(Constraint(kind, other)) == Constraint(kind, source)
    assert canonical(Constraint(kind, source)) == Constraint(kind, source)


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ('{"properties": {"a": {}, "b": {}}}', '{"properties": {"b": {}, "a": {}}}'),
        ('{"const": 1}', '{"const": 1.0}'),
        ('{"const": "1"}', '{"const": 1}'),
        ('{"enum": [1, 2]}', '{"enum": [2, 1]}'),
    ],
)
def test_what_may_say_something_else_stays_apart(source: str, other: str) -> None:
    assert canonical(Constraint(SCHEMA, source)) != canonical(Constraint(SCHEMA, other))


@pytest.mark.parametrize("source", ["{", '{"maximum": NaN}', '{"maximum": 1e999}', "[" * 100_000, "1" * 5000, ""])
def test_what_cannot_be_read_stays_as_it_is(source: str) -> None:
    constraint = Constraint(SCHEMA, source)
    assert canonical(constraint) is constraint


def test_kind_and_style_stay_and_other_languages_are_not_touched() -> None:
    style = JsonStyle(Whitespace.COMPACT)
    assert canonical(Constraint(SCHEMA, "{ }", style)) == Constraint(SCHEMA, "{}", style)
    for kind in (ConstraintKind.REGEX, ConstraintKind.LARK, ConstraintKind.GBNF, ConstraintKind.EBNF):
        constraint = Constraint(kind, "[ 1,  2 ]")
        assert canonical(constraint) is constraint


def test_what_was_just_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = canonical(Constraint(SCHEMA, '{ "const": "read once" }'))
    monkeypatch.setattr("rtlang_grammars.spec.canonical_json.json", None)
    assert canonical(Constraint(SCHEMA, '{ "const": "read once" }')) == first
