"""The ends of a grammar's texts within a text, against a recognizer of whole texts."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.prefixes import prefix_ends
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.cfg_membership import cfg_accepts

GRAMMARS = {
    "nested": 'root ::= "(" root ")" | "a" | ""',
    "left recursive": 'root ::= root "+" item | item\nitem ::= "a" | "(" root ")"',
    "ambiguous": 'root ::= root root | "a" | "b"',
    "empty rules": 'root ::= one two one\none ::= "a"? two\ntwo ::= "b"* | three\nthree ::= "" | "(" root ")"',
    "right recursive": 'root ::= "a" root | "+" | "b" root "b"',
    "hidden left recursion": 'root ::= none root "b" | "a"\nnone ::= "" | "+"',
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_ends_are_those_of_the_texts_that_are_in_the_language(name: str) -> None:
    cfg, rng = read_gbnf(GRAMMARS[name]), random.Random(name)
    for _ in range(60):
        text = "".join(rng.choice("ab(+)") for _ in range(rng.randrange(9)))
        at = rng.randrange(len(text) + 1)

        def ends(terminal: int, position: int, text: str = text) -> list[int]:
            return list(cfg.terminals[terminal].language.ends(text, position, Budget()))

        expected = [end for end in range(at, len(text) + 1) if cfg_accepts(cfg, text[at:end])]
        assert prefix_ends(cfg, at, ends, Budget()) == expected, (text, at)


def test_the_work_is_bounded() -> None:
    cfg, text = read_gbnf(GRAMMARS["ambiguous"]), "ab" * 200
    budget = Budget(Limits(max_states=1000))
    with pytest.raises(GrammarError, match="too complex"):
        prefix_ends(cfg, 0, lambda terminal, at: cfg.terminals[terminal].language.ends(text, at, budget), budget)
