"""Conflicts are followed, recursion that would stack empty parts without end is refused."""

from __future__ import annotations

import pytest

from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


def test_every_action_of_a_conflict_is_followed() -> None:
    palindromes = lexed_grammar('start: "a" start "a" | "b" start "b" | "c"')
    ambiguous = lexed_grammar('start: e\ne: e "+" e | e "*" e | "1"')
    undecided = lexed_grammar('start: x "a" "b" | y "a" "c"\nx: "1"\ny: "1"')
    assert ambiguous.tables.rules.num_conflicts > 0
    assert undecided.tables.rules.num_conflicts > 0
    assert accepts(palindromes, "abcba")
    assert not accepts(palindromes, "abcab")
    assert accepts(ambiguous, "1+1*1+1")
    assert accepts(undecided, "1ab")
    assert accepts(undecided, "1ac")
    assert not accepts(undecided, "1a")


@pytest.mark.parametrize("source", ['start: a start "b" | "c"\na: "x"?', 'start: x\nx: y x "c" | "b"\ny: "a" |'])
def test_hidden_left_recursion_is_refused(source: str) -> None:
    with pytest.raises(GrammarError, match="can begin with itself after parts that may be empty"):
        lexed_grammar(source)


def test_many_parts_may_be_empty() -> None:
    optional = " ".join(f"r{number}?" for number in range(100))
    rules = "\n".join(f'r{number}: "k{number};"' for number in range(100))
    grammar = lexed_grammar(f"start: {optional}\n{rules}")
    assert accepts(grammar, "k0;k7;k50;k99;")
    assert not accepts(grammar, "k7;k0;")


def test_rules_without_end_match_nothing() -> None:
    with pytest.raises(GrammarError, match="matches no string"):
        lexed_grammar('start: "a" start')


def test_the_memory_of_the_analysis_is_bounded() -> None:
    names = [f"t{number}" for number in range(120)]
    rules = "\n".join(f'{name}: "{name};" start | "x"' for name in names)
    source = f"start: {' | '.join(names)}\n{rules}"
    LexedTables(source, Budget())
    with pytest.raises(GrammarError, match="too large: the tables need more than 4000000 bytes"):
        LexedTables(source, Budget(Limits(max_bytes=4_000_000)))
