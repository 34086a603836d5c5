"""Which terminals end freely in grammars where that can be said by hand."""

from __future__ import annotations

import pytest

from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexer_run.lexer_layout import IS_FREE, PAIR_TERMINAL
from rtlang_grammars.spec.limits import Budget, Limits

CASES = [
    # grammar, terminals that never end freely
    ('start: N N\nN: /[0-9]+/\n%ignore " "', set()),
    ('start: N N | N "."\nN: /[0-9]+/', {"N"}),
    ('start: N N | N "."\nN: /[0-9]/', set()),
    ('start: "(" T ")" | "%"\nT: /[a-z)]+/', {"LPAR", "T"}),
    ('start: "(" T ")"\nT: /[a-z]+/', set()),
    ('start: A B\nA: /a(?=b)/\nB: "b" | "c"', set()),
    ('start: A B | "%"\nA: /a(?=d)/\nB: "b" | "c"', {"A"}),
    ('start: x | y\nx: A B\ny: A B\nA: "a"\nB: "b"', set()),
    ("start: x A | y B\nx: A\ny: A\nA: /a+/\nB: /b/", {"A"}),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_what_ends_freely(source: str, expected: set[str]) -> None:
    tables = LexedTables(source, Budget(Limits(max_seconds=60.0)))
    free = {tables.names[pair[PAIR_TERMINAL]] for pair in tables.lexer.pairs.tolist() if pair[IS_FREE]}
    assert set(tables.names) - free == expected


def test_a_terminal_that_nothing_can_follow_does_not_hinder_the_rest() -> None:
    source = 'start: (item ";")+\nitem: N | item BREAK "+" | item "[" N "]"\nN: /[0-9]+/\nBREAK.1: /\\n+(?=\\[)/\n%ignore /[ \\n]+/'
    tables = LexedTables(source, Budget(Limits(max_seconds=60.0)))
    doubtful = {tables.names[pair[PAIR_TERMINAL]] for pair in tables.lexer.pairs.tolist() if not pair[IS_FREE]}
    assert doubtful == {"BREAK"}
