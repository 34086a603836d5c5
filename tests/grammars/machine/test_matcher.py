"""Masks that allow no token, in vocabularies that lack a byte."""

from __future__ import annotations

import pickle

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
