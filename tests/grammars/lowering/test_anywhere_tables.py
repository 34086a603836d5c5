"""Tables of grammars without a lexer: which grammars have them, and what their parser and lexer share."""

from __future__ import annotations

import pytest

from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.lark_reader import read_lark_apart
from rtlang_grammars.lowering.anywhere_tables import AnywhereTables
from rtlang_grammars.lowering.compilation import Built, Compilation, build_rules
from rtlang_grammars.machine.lexer_run.lexer_layout import ANYWHERE
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits


def built(source: str, kind: ConstraintKind = ConstraintKind.GBNF, limits: Limits | None = None) -> object:
    constraint = Constraint(kind, source, lexer=Lexer.ANYWHERE)
    return build_rules(Compilation(constraint, None, limits or Limits(), False), Budget(limits))


def test_regular_grammars_are_one_automaton() -> None:
    assert isinstance(built('root ::= [a-z]+ (" " [a-z]+)*'), Built)
    assert isinstance(built('start: A*\nA: "a"\n%ignore " "', ConstraintKind.LARK), Built)
    assert isinstance(built("s ::= 'a' s | #x62", ConstraintKind.EBNF), Built)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ('root ::= "(" root ")" | [a-z]+', ConstraintKind.GBNF),
        ("s ::= '(' s ')' | [a-z]+", ConstraintKind.EBNF),
        ('start: "(" start ")" | A+\nA: /[a-z]+/\n%ignore " "', ConstraintKind.LARK),
    ],
)
def test_other_grammars_have_a_lexer_whose_terminals_end_anywhere(source: str, kind: ConstraintKind) -> None:
    tables = built(source, kind)
    assert isinstance(tables, AnywhereTables)
    assert tables.lexer.order[0] == ANYWHERE


def test_ignored_terminals_are_one_and_stand_apart() -> None:
    cfg, ignored = read_lark_apart('start: "(" start ")" | A\nA: /[a-z]+/\n%ignore " "\n%ignore /#[^\\n]*\\n/')
    tables = AnywhereTables(cfg, Budget(), ignored)
    assert len(ignored) == 1
    assert ignored[0].language.accepts(" # a\n ")
    assert tables.ignored == {tables.num_terminals - 1}


def test_rules_that_begin_with_themselves_after_empty_parts_are_rewritten() -> None:
    assert isinstance(built('root ::= e\ne ::= ws e "+" e | "(" e ")" | [a-z]\nws ::= " "*'), AnywhereTables)


def test_terminals_that_are_too_large_get_tables_on_demand() -> None:
    many = " | ".join(f'"{number:04x}" [a-f]{{0,40}} "{number}"' for number in range(300))
    source = f'root ::= "(" root ")" | any\nany ::= {many}'
    assert isinstance(built(source, limits=Limits(max_seconds=2.0, max_bytes=2 << 20)), Built)


def test_a_grammar_without_texts_is_refused() -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        read_gbnf('root ::= "a" root')
