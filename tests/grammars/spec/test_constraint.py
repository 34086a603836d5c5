"""Constraints as data, and the error of a constraint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rtlang_grammars.spec.constraint import (
    ANY_STYLE,
    Constraint,
    ConstraintKind,
    JsonStyle,
    Lexer,
    Numbers,
    PropertyOrder,
)
from rtlang_grammars.spec.errors import GrammarError

GRAMMARS = Path(__file__).parents[3] / "grammars"


def test_equal_constraints_are_one_cache_key() -> None:
    first = Constraint(ConstraintKind("regex"), "a+")
    assert {first: 1}[Constraint(ConstraintKind.REGEX, "a+")] == 1
    assert first != Constraint(ConstraintKind.LARK, "a+")


@pytest.mark.parametrize("order", PropertyOrder)
@pytest.mark.parametrize("numbers", Numbers)
def test_a_style_travels_with_its_constraint(order: PropertyOrder, numbers: Numbers) -> None:
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, "{}", JsonStyle(order=order, numbers=numbers))
    assert Constraint.from_plain(constraint.to_plain()) == constraint


def test_properties_in_declared_order_and_plain_integers_are_the_default() -> None:
    plain = {"kind": "json_schema", "source": "{}"}
    constraint = Constraint.from_plain(plain)
    assert constraint.style == JsonStyle(order=PropertyOrder.DECLARED_THEN_OTHERS, numbers=Numbers.PLAIN)
    assert constraint.to_plain() == plain
    assert Constraint.from_plain(plain | {"order": "any", "numbers": "any"}).style == ANY_STYLE
    for field in ("order", "numbers"):
        with pytest.raises(GrammarError) as caught:
            Constraint.from_plain(plain | {field: "sorted"})
        assert caught.value.location == field


def test_a_lexer_travels_with_a_lark_grammar_only() -> None:
    constraint = Constraint(ConstraintKind.LARK, 'start: "a"', lexer=Lexer.LARK)
    assert constraint.to_plain() == {"kind": "lark", "source": 'start: "a"', "lexer": "lark"}
    assert Constraint.from_plain(constraint.to_plain()) == constraint
    for plain in ({"kind": "regex", "source": "a", "lexer": "lark"}, {"kind": "lark", "source": "a", "lexer": "first"}):
        with pytest.raises(GrammarError) as caught:
            Constraint.from_plain(plain)
        assert caught.value.location == "lexer"


def test_an_error_keeps_its_facts_and_says_where() -> None:
    error = GrammarError("unclosed group", "1:3")
    assert (error.reason, error.location, str(error)) == ("unclosed group", "1:3", "unclosed group (at 1:3)")
    assert str(GrammarError("empty")) == "empty"


def test_describing_a_constraint_loads_no_library() -> None:
    code = """import sys, rtlang_grammars.spec.constraint, rtlang_grammars.spec.protocols
print(sorted({'numpy', 'llguidance', 'tokenizers', 'torch'} & {*sys.modules}))"""
    result = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(GRAMMARS)}, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
