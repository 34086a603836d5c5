"""Sets of tokens as states of the machine."""

from __future__ import annotations

import numpy as np

from rtlang_grammars.machine.automaton.layout import BYTE, ENDS, NONE, OPEN, ROW, TARGET
from rtlang_grammars.machine.automaton.tables import Tables
from rtlang_grammars.spec.tokens import Ranges, SpellingAutomaton


def add_token_set(tables: Tables, tokens: Ranges) -> int:
    """Add the states of a frame that takes one of some tokens and ends; returns its start state."""
    states = SpellingAutomaton.of(tokens).states
    tables.budget.spend(states=len(states))
    tables.token_sets.add(tokens)
    numbers = [tables.add_state(acc=ENDS if not moves else OPEN) for moves in states]
    for number, moves in zip(numbers, states, strict=True):
        if len(moves) == 1 and moves[0][0] == moves[0][1]:
            tables.set_state(number, BYTE, moves[0][0])
            tables.set_state(number, TARGET, numbers[moves[0][2]])
        elif moves:
            values = np.full(256, NONE, dtype=np.int32)
            for first, last, to in moves:
                values[first : last + 1] = numbers[to]
            place = tables.add_row()
            tables.rows[place] = values
            tables.set_state(number, ROW, place)
    return numbers[0]
