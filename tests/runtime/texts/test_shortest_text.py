"""Shortest texts, and refusals of texts."""

from __future__ import annotations

import re

import pytest

from rtlang.contract.errors import ConstraintError
from rtlang.runtime.texts.shortest_text import allows, shortest_text
from rtlang_grammars import Constraint, ConstraintKind


@pytest.mark.parametrize("pattern", ["a{3}|b{2}", "[é-ü]x?", "(ab)+c", ""])
def test_the_text_matches(pattern: str) -> None:
    text = shortest_text(Constraint(ConstraintKind.REGEX, pattern))
    assert re.fullmatch(pattern, text)
    assert allows(Constraint(ConstraintKind.REGEX, pattern), text) is None


def test_a_refusal_says_where() -> None:
    constraint = Constraint(ConstraintKind.REGEX, "ab+c")
    assert allows(constraint, "abbc") is None
    assert allows(constraint, "abx") == "after 'ab' follows 'x'"
    assert allows(constraint, "ab") == "the text ends too early, after 'ab'"


def test_a_malformed_constraint_is_an_error() -> None:
    with pytest.raises(ConstraintError):
        shortest_text(Constraint(ConstraintKind.REGEX, "(a"))
