"""Indented grammars with unbalanced brackets are refused, and balanced ones are not."""

from __future__ import annotations

import pytest

from rtlang_grammars.spec.constraint import Indentation
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar

LINES = 'start: stmt+\nstmt: "=" expr NL\nNAME: /[a-z]/\nNL: /\\n */\n%declare IN OUT\n'
NAME_ONLY = 'expr: NAME | "(" NAME ")"'
MIXED = 'expr: NAME | "(" expr "]" | "[" items ")"\nitems: | items "," expr'
ONCE = 'expr: NAME "(" NAME'
ENDS = 'expr: NAME ")" NAME "("'


@pytest.mark.parametrize(
    ("rules", "opened", "closed", "reason"),
    [
        (NAME_ONLY, ("LPAR",), ("RPAR",), None),
        (NAME_ONLY, (), (), None),
        (NAME_ONLY, (), ("RPAR",), "rule expr: its alternatives do not open and close equally many brackets"),
        (NAME_ONLY, ("LPAR",), (), r"listed: LPAR\)"),
        (MIXED, ("LPAR", "LSQB"), ("RPAR", "RSQB"), None),
        (MIXED, ("LPAR",), ("RPAR",), "do not open and close equally many"),
        (ONCE, ("LPAR",), (), "do not open and close equally many|opens more brackets than it closes"),
        (ENDS, ("LPAR",), ("RPAR",), "rule start: it closes more brackets than it opens"),
    ],
)
def test_brackets_must_be_balanced(
    rules: str, opened: tuple[str, ...], closed: tuple[str, ...], reason: str | None
) -> None:
    lines = Indentation("NL", "IN", "OUT", opened, closed)
    if reason is not None:
        with pytest.raises(GrammarError, match=reason):
            lexed_grammar(LINES + rules, indentation=lines)
        return
    grammar = lexed_grammar(LINES + rules, indentation=lines)
    inside = "(\n a\n)" if rules == NAME_ONLY else "(\n a\n]"
    assert accepts(grammar, "=a\n")
    assert accepts(grammar, f"={inside}\n") == bool(opened)
