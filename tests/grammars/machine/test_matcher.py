"""Masks that allow no token, in vocabularies that lack a byte; steps that a grammar remembers."""

from __future__ import annotations

import pickle
import random
import re
from itertools import product

import numpy as np
import pytest

from rtlang_grammars import (
    Constraint,
    ConstraintKind,
    EmptyMaskError,
    GrammarError,
    RtlangBackend,
    Vocabulary,
    fill_batch,
)
from rtlang_grammars.machine import grammar
from rtlang_grammars.machine.batch import fill_tree

LARK = Constraint(ConstraintKind.LARK, 'start: "a" NUMBER "c" | "b"\nNUMBER: /[0-9]/')
CONSTRAINTS = [LARK, Constraint(ConstraintKind.REGEX, "a[0-9]c|b")]


def backend(texts: str, *, with_end: bool = True) -> RtlangBackend:
    tokens = (*(each.encode() for each in texts), b"")
    ends = frozenset([len(texts)])
    return RtlangBackend.create(Vocabulary(tokens, ends if with_end else frozenset(), ends, len(tokens)))


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=["lexed", "tables"])
def test_an_empty_mask_is_an_error(constraint: Constraint) -> None:
    matcher = backend("abc").compile(constraint).matcher()
    row = np.ones((1, 1), dtype=np.int32)
    matcher.fill_bitmask(row[0])
    assert row[0, 0] == 0b011
    assert fill_tree(matcher, [0, 1], [-1, -1], np.zeros((2, 1), dtype=np.int32)) == [True, True]
    assert matcher.accept_token(0)
    with pytest.raises(EmptyMaskError, match="asks for one of the bytes b'01234567' and others") as caught:
        matcher.fill_bitmask(row[0])
    with pytest.raises(EmptyMaskError):
        fill_batch([matcher], row)
    assert matcher.allowed([0, 1, 2]) == [False, False, False]
    named = pickle.loads(pickle.dumps(caught.value.after(b"x" * 100 + b"a", "calls")))
    assert (named.text, named.constraint) == (b"x" * 79 + b"a", "calls")
    assert str(named).startswith("constraint calls: no token may follow after b'xxx")


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=["lexed", "tables"])
def test_a_complete_text_may_have_no_token(constraint: Constraint) -> None:
    matcher = backend("abc1", with_end=False).compile(constraint).matcher()
    assert matcher.accept_token(1)
    row = np.ones(1, dtype=np.int32)
    matcher.fill_bitmask(row)
    assert (row[0], matcher.is_accepting) == (0, True)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=["lexed", "tables"])
def test_a_constraint_that_no_token_begins_is_refused(constraint: Constraint) -> None:
    with pytest.raises(GrammarError, match="no token of the vocabulary begins a text of the constraint"):
        backend("cd1").compile(constraint)


@pytest.mark.parametrize("num_bytes", [3000, 1 << 20])
def test_remembered_steps_lead_where_others_do(num_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many texts pass the same places; with few known steps, these are forgotten again and again."""
    monkeypatch.setattr(grammar, "_MAX_KNOWN_BYTES", num_bytes)
    pattern = "(ab|ba){1,3}c*|[a-c]{2,4}a|c(c|b)*"
    compiled, rng, seen = backend("abc").compile(Constraint(ConstraintKind.REGEX, pattern)), random.Random(0), set()
    for _ in range(120):
        matcher, text = compiled.matcher(), ""
        for _ in range(9):
            token = rng.randrange(3)
            before = matcher.is_accepting, matcher.is_terminated
            if matcher.accept_token(token):
                text += "abc"[token]
            else:
                assert before == (matcher.is_accepting, matcher.is_terminated)
            assert matcher.is_accepting == bool(re.fullmatch(pattern, text)), text
            for rest in (b"c", b"ab", b"a", b""):
                assert matcher.completes_bytes(rest) == bool(re.fullmatch(pattern, text + rest.decode())), (text, rest)
            if matcher.is_accepting:
                more = (text + "".join(each) for n in range(1, 6) for each in product("abc", repeat=n))
                assert matcher.is_terminated == (not any(re.fullmatch(pattern, each) for each in more))
            seen.add(text)
    assert len(seen) > 60
