"""Hostile inputs: each comes to a grammar within the limits or to a typed error, and its masks are those of trying every token."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Limits
from rtlang_grammars_bench.pathological import CASES, answer, table, walk
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary

VOCABULARY = small_vocabulary()
LIMITS = Limits(max_seconds=600.0)
"""Time is no part of what is tested; states, bytes and depth bound the same work."""
REFUSED = {
    "5,000 objects as enum": "begin with the same byte",
    "text 100,000 deep": "nested too deeply",
    "10,000 brackets": "nested too deeply",
    "50,000 alternatives": "states",
    "minContains 1,000,000": "contains",
    "cyclic $ref": "leads back to itself",
    "endless $ref": "nothing satisfies",
    "remote $ref": "never fetched",
    "24 anyOf in allOf": "cases",
    "5 MB of schema": "too long",
    "1 MB of Lark rules": "characters",
    "60,000 literals in Lark": "characters",
}


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY, limits=LIMITS)


@functools.cache
def found_for(name: str) -> RtlangGrammar | GrammarError:
    found = answer(backend(), CASES[name]())
    assert isinstance(found, RtlangGrammar | GrammarError)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_grammar_within_the_limits_or_a_typed_error(name: str) -> None:
    found = found_for(name)
    if isinstance(found, GrammarError):
        assert name in REFUSED, found
        assert REFUSED[name] in str(found)
        return
    assert name not in REFUSED
    assert isinstance(found, RtlangGrammar)
    taken, _ = walk(found, VOCABULARY, 12)
    assert taken or "enum" in name
    assert found.machine.tables.num_bytes <= LIMITS.max_bytes


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_masks_are_those_of_trying_every_token(name: str) -> None:
    found = found_for(name)
    assert isinstance(found, RtlangGrammar)
    rng, matcher = random.Random(3), found.matcher()
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    for _ in range(3):
        matcher.fill_bitmask(row)
        allowed = allowed_ids(row)
        assert allowed == [t for t in range(VOCABULARY.vocab_size) if matcher.fork().accept_token(t)]
        going_on = [token for token in allowed if token not in VOCABULARY.eos_token_ids]
        if not going_on:
            break
        assert matcher.accept_token(rng.choice(going_on))


@pytest.mark.parametrize("name", CASES)
def test_without_time_the_answer_is_typed_all_the_same(name: str) -> None:
    hurried = RtlangBackend(backend()._index, Limits(max_seconds=0.0))
    assert isinstance(answer(hurried, CASES[name]()), RtlangGrammar | GrammarError)


def test_rows_made_on_the_way_count_towards_the_memory_of_the_grammar() -> None:
    small = RtlangBackend(backend()._index, Limits(max_seconds=600.0, max_bytes=1 << 18))
    found = answer(small, CASES["[ab]*a[ab]{24}"]())
    assert isinstance(found, RtlangGrammar)
    token_of = {text: i for i, text in enumerate(VOCABULARY.token_bytes)}
    rng, matcher = random.Random(5), found.matcher()

    def go_on() -> None:
        for _ in range(2000):
            assert matcher.accept_token(token_of[rng.choice([b"a", b"b"])])

    with pytest.raises(GrammarError, match="too large"):
        go_on()
    assert found.machine.tables.num_bytes <= 1 << 19


def test_the_table_has_a_line_for_each_input() -> None:
    lines = table(VOCABULARY, ["[ab]*a[ab]{24}", "remote $ref"])
    assert len(lines) == 4
    assert "compiled" in lines[2]
    assert "refused" in lines[3]
