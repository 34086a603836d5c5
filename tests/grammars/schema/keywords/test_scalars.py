"""The dialects of patterns in schemas: `x-pattern-dialect` beside `pattern`."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.shape_graph.shapes import StringShape
from rtlang_grammars.schema.value_checks import value_check
from rtlang_grammars.spec.errors import GrammarError


def allows(schema: dict[str, Any], text: str) -> bool:
    (shape,) = compile_shapes(schema).shapes[0].alternatives
    assert isinstance(shape, StringShape)
    assert shape.language is not None
    accepted = shape.language.accepts(text)
    assert accepted == (value_check(schema).error(text) is None)
    return accepted


@pytest.mark.parametrize(
    ("dialect", "pattern", "good", "bad"),
    [
        ("rust", r"(?i)^ab\z", "aB", "ab\n"),
        ("rust", r"^[\w--b]+$", "ac", "ab"),
        ("python", r"(?i)^ab$", "AB\n", "ABC"),
        ("python", r"^(?P<n>a)\Z", "a", "a\n"),
        ("ecma", r"^\p{Lu}$", "É", "é"),
    ],
)
def test_a_pattern_is_read_in_its_dialect(dialect: str, pattern: str, good: str, bad: str) -> None:
    schema = {"type": "string", "pattern": pattern, "x-pattern-dialect": dialect}
    assert allows(schema, good)
    assert not allows(schema, bad)


def test_the_same_pattern_in_two_dialects_is_two_patterns() -> None:
    def kind(dialect: str) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^a$", "x-pattern-dialect": dialect}

    ecma, python = (compile_shapes(kind(each)).shapes[0].alternatives[0] for each in ("ecma", "python"))
    assert ecma != python
    both = {"allOf": [kind("ecma"), kind("python")]}
    assert allows(both, "a")
    assert not allows(both, "a\n")


def test_a_dialect_without_a_pattern_asserts_nothing() -> None:
    assert compile_shapes({"x-pattern-dialect": "rust"}).report.is_exact
    with pytest.raises(GrammarError, match="nothing satisfies"):
        compile_shapes({"not": {"x-pattern-dialect": "rust"}})


@pytest.mark.parametrize("dialect", ["posix", 3, None])
def test_unknown_dialects_are_refused_by_name(dialect: Any) -> None:
    schema = {"properties": {"a": {"pattern": "a", "x-pattern-dialect": dialect}}}
    with pytest.raises(GrammarError, match="x-pattern-dialect must be one of ecma, python, rust, lark, not") as caught:
        compile_shapes(schema)
    assert caught.value.location == "#/properties/a"
