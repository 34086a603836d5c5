"""Constraints as data, and the error of a constraint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError

GRAMMARS = Path(__file__).parents[3] / "grammars"


def test_equal_constraints_are_one_cache_key() -> None:
    first = Constraint(ConstraintKind("regex"), "a+")
    assert {first: 1}[Constraint(ConstraintKind.REGEX, "a+")] == 1
    assert first != Constraint(ConstraintKind.LARK, "a+")


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
