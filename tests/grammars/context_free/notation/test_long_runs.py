"""Runs of the chunks of long texts."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.context_free.notation.long_runs import MANY_CHUNKS, LongRuns
from rtlang_grammars.context_free.notation.terminal_expressions import substrings_of
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


def test_runs_are_those_of_the_text() -> None:
    rng = random.Random(3)
    words = ["".join(rng.choice("aé b.") for _ in range(rng.randint(1, 4))) for _ in range(110)]
    found = LongRuns(words)
    every = {"".join(words[i:j]) for i in range(len(words) + 1) for j in range(i, len(words) + 1)}
    for run in sorted(every, key=len)[:300]:
        for text in (run, run[1:], run[:-1], run + "a", run + "x"):
            assert found.accepts(text) == (text in every), text


def test_long_texts_are_terminals_of_their_own() -> None:
    text = "".join(random.Random(1).choice("abcdefgh ") for _ in range(1500))
    grammar = lexed_grammar('start: "<" %regex {"substring_chars": "' + text + '"} ">"')
    assert accepts(grammar, f"<{text[300:420]}>")
    assert not accepts(grammar, f"<{text[300:420]}x>")
    words = substrings_of('{"substring_words": "' + "a b " * MANY_CHUNKS + '"}')
    with pytest.raises(GrammarError, match="must be a terminal of its own"):
        words.complement()
