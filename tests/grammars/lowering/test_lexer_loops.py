"""Loops of lexer states against the automaton, byte by byte, also of states that joins add."""

from __future__ import annotations

import numpy as np
import pytest

from rtlang_grammars.context_free.lark_library import library_constraint
from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.lowering.lexer_loops import LexerLoops
from rtlang_grammars.machine.lexer_run.lexer_layout import HOME
from rtlang_grammars.machine.token_index.byte_kinds import ASCII_KINDS, HIGH
from rtlang_grammars.spec.limits import Budget, Limits

_BEYOND_ASCII = [chr(point).encode() for point in (0x80, 0xE9, 0x7FF, 0x800, 0x4E2D, 0xD7FF, 0xE000, 0x10000, 0x10FFFF)]


@pytest.mark.parametrize("name", ["sql_select_postgres", "yaml_subset"])
def test_a_state_reads_all_that_is_not_among_its_exits_in_a_loop(name: str) -> None:
    constraint = library_constraint(name)
    budget = Budget(Limits(max_seconds=60.0))
    tables = LexedTables(constraint.source, budget, indentation=constraint.indentation)
    num_before = tables.num_rows
    for other in range(1, 8):
        if tables.parser.joins[0, other] < 0:
            tables.join(0, other)
    assert tables.num_rows > num_before
    automaton, homes, exits = tables.automaton, tables.lexer.states[:, HOME], tables.lexer.exits
    whole = LexerLoops()
    whole.extend(automaton)
    assert np.array_equal(whole.homes, homes)
    assert np.array_equal(whole.exits, exits)
    num_loops = 0
    for state in range(tables.num_rows):
        kinds = [*enumerate([bytes([byte]) for byte in members] for members in ASCII_KINDS), (HIGH, _BEYOND_ASCII)]
        for kind, texts in kinds if homes[state] == state else []:
            if exits[state] >> kind & 1:
                continue
            num_loops += 1
            for text in texts:
                at = state
                for byte in text:
                    assert automaton.winners[at, automaton.classes[byte]] < 0 or automaton.is_sure[state]
                    at = int(automaton.following[at, automaton.classes[byte]])
                assert at == state, text
    assert num_loops > 100
