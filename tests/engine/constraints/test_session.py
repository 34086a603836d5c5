"""One request's way through its constraint: tokens that are replaced, ends, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rtlang.contract.errors import ConstraintError, DeadEndError
from rtlang.engine.constraints.session import ConstraintSession, MaskTimes, as_constraint_error, dead_end_of
from rtlang_grammars import CompletionSearch, Constraint, ConstraintKind, GrammarError, RtlangBackend, TokenBudget
from rtlang_grammars.spec.errors import EmptyMaskError
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()


def session_of(
    constraint: Constraint, max_tokens: int, *, has_end: bool = True, mask_times: MaskTimes | None = None
) -> ConstraintSession:
    vocabulary = small_vocabulary(has_end=has_end)
    search = CompletionSearch(vocabulary)
    matcher = RtlangBackend.create(vocabulary).compile(constraint).matcher()
    path = search.find(matcher, max_tokens)
    assert path is not None
    return ConstraintSession(
        matcher, TokenBudget(search, path), vocabulary.eos_token_ids, lambda: None, mask_times=mask_times
    )


def test_one_token_that_decides_for_something_long_is_replaced() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"const": "a long text"}, "minItems": 20}]}
    session = session_of(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)), 12)
    (bracket,) = spell(VOCABULARY, "[")
    assert session.accept(bracket, 12) != bracket
    assert session.is_accepting


def test_where_only_the_end_is_left_the_session_ends() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "a(bc)*"), 2)
    assert session.accept(ord("a"), 2) == ord("a")
    assert session.is_accepting
    assert not session.is_complete
    assert session.accept(ord("b"), 1) is None
    assert session.is_complete


def test_an_end_token_that_the_constraint_names_is_a_part_of_the_text() -> None:
    end, stop = (VOCABULARY.tokens.names[name] for name in ("<|end|>", "<|stop|>"))
    session = session_of(Constraint(ConstraintKind.LARK, 'start: "a" (<|end|> "b")? <|end|>'), 9)
    assert [session.accept(token, 9) for token in (ord("a"), end, ord("b"))] == [ord("a"), end, ord("b")]
    assert not session.is_accepting
    assert session.accept(end, 5) == end
    assert session.is_complete
    assert session.accept(stop, 4) is None
    session = session_of(Constraint(ConstraintKind.LARK, 'start: ("a" <|end|>)* "a"?'), 3)
    assert [session.accept(token, 3 - i) for i, token in enumerate((ord("a"), end, ord("a")))] == [
        ord("a"),
        end,
        ord("a"),
    ]
    assert session.accept(stop, 1) is None
    assert session.is_complete


def test_near_its_budget_a_text_with_tokens_is_steered_to_its_end() -> None:
    tool, end = (VOCABULARY.tokens.names[name] for name in ("<|tool|>", "<|end|>"))
    session = session_of(Constraint(ConstraintKind.LARK, "start: W <|tool|> W <|end|>\nW: /[a-z]+/"), 6)
    accepted = [session.accept(token, 6 - i) for i, token in enumerate([*b"abcd", ord("e"), ord("f")])]
    assert accepted == [*b"abc", tool, ord("e"), end]
    assert session.is_complete


def test_a_model_without_end_token_fails_only_where_it_cannot_go_on() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 5, has_end=False)
    assert session.end_token_ids == frozenset()
    assert [session.accept(ord(letter), 5 - i) for i, letter in enumerate("words")] == [*b"words"]
    session = session_of(Constraint(ConstraintKind.REGEX, "a(bc)*"), 2, has_end=False)
    session.accept(ord("a"), 2)
    with pytest.raises(ConstraintError, match="no end token"):
        session.accept(ord("b"), 1)


def test_a_token_the_mask_does_not_allow_is_an_error() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 9)
    with pytest.raises(ConstraintError, match="not allowed"):
        session.accept(ord("7"), 9)


def test_a_mask_that_fails_is_empty_and_told_later() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 9)
    row = np.full(VOCABULARY.num_mask_words, 7, dtype=np.int32)
    session.fill(row)
    session.raise_if_failed()
    assert {VOCABULARY.token_bytes[token][:1].islower() for token in allowed_ids(row)} == {True}
    session.fill(row[:-1])  # what the matcher does not take
    assert not row[:-1].any()
    with pytest.raises(ConstraintError, match="int32"):
        session.raise_if_failed()


class DeadEndMatcher:
    """A matcher after `take` tokens of which nothing may follow; `raises`: it says so itself."""

    is_terminated = is_accepting = False

    def __init__(self, inner: Any, take: int, *, raises: bool) -> None:
        self._inner, self._left, self._raises = inner, take, raises

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fill_bitmask(self, row: Any) -> None:
        if self._left > 0:
            self._inner.fill_bitmask(row)
            return
        row.fill(0)
        if self._raises:
            raise EmptyMaskError("nothing fits")

    def accept_token(self, token_id: int) -> bool:
        self._left -= 1
        return bool(self._inner.accept_token(token_id))

    def rollback(self, num_tokens: int) -> None:
        self._left += num_tokens
        self._inner.rollback(num_tokens)


@pytest.mark.parametrize("raises", [False, True])
def test_an_empty_mask_in_an_unfinished_text_is_an_error_of_its_own(raises: bool) -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{4,8}"), 9)
    session._matcher = DeadEndMatcher(session._matcher, 2, raises=raises)
    rows = np.zeros((3, VOCABULARY.num_mask_words), dtype=np.int32)
    session.masks_along([ord("a"), ord("b")], rows)  # the text may never come there
    session.raise_if_failed()
    assert [bool(row.any()) for row in rows] == [True, True, False]
    assert not session.mask_after([ord("a"), ord("b")], rows[0])
    for letter in b"ab":
        session.fill(rows[0])
        session.raise_if_failed()
        assert session.accept(letter, 9) == letter
    session.fill(rows[0])
    assert not rows[0].any()
    with pytest.raises(DeadEndError, match="after 'ab'") as caught:
        session.raise_if_failed()
    assert caught.value.text == "ab"


@pytest.mark.parametrize("raises", [False, True])
def test_the_dead_end_of_forced_text_is_found(raises: bool) -> None:
    matcher = RtlangBackend.create(VOCABULARY).compile(Constraint(ConstraintKind.REGEX, "qxqx[a-z]+")).matcher()
    found = dead_end_of(DeadEndMatcher(matcher.fork(), 2, raises=raises), VOCABULARY)
    assert found is not None
    assert found.text == "qx"
    assert dead_end_of(DeadEndMatcher(matcher.fork(), 9, raises=raises), VOCABULARY) is None
    assert dead_end_of(matcher, VOCABULARY) is None


def test_an_empty_mask_after_a_whole_text_is_its_end() -> None:
    session = session_of(Constraint(ConstraintKind.CHOICE, '["a"]'), 9, has_end=False)
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    assert session.accept(ord("a"), 9) == ord("a")
    session.fill(row)
    session.raise_if_failed()
    assert session.is_complete


def test_a_grammar_is_slow_from_one_long_mask_to_many_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now, takes = [0.0], [0.0]

    def clock() -> float:
        now[0] += takes[0]
        return now[0]

    monkeypatch.setattr("rtlang.engine.constraints.session.thread_time", clock)
    row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    mask_times, paces = MaskTimes(), []
    for seconds in [0.01, 0.06, *[0.01] * 31, 0.06, *[0.01] * 33]:  # each by a session of its own
        takes[0] = seconds
        session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 9, mask_times=mask_times)
        session.fill(row)
        paces.append(session.is_slow)
    assert paces == [False, *[True] * (1 + 31 + 1 + 31), False, False]


def test_of_a_closed_session_no_mask_is_made() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 9)
    jobs: list[Callable[[], None]] = []
    session.prepare(VOCABULARY.num_mask_words, jobs.append, lambda: None)
    session.close()
    session._matcher = None  # type: ignore[assignment]
    jobs.pop()()
    assert not session.is_preparing
    session.raise_if_failed()


def test_a_prepared_mask_is_that_of_a_fill_and_is_used_once() -> None:
    session = session_of(Constraint(ConstraintKind.REGEX, "[a-z]{2,8}"), 9)
    expected, row = (np.zeros(VOCABULARY.num_mask_words, dtype=np.int32) for _ in range(2))
    session.fill(expected)
    jobs: list[Callable[[], None]] = []
    woken: list[bool] = []
    session.prepare(len(row), jobs.append, lambda: woken.append(session.is_preparing))
    assert session.is_preparing
    assert not woken
    jobs.pop()()
    assert woken == [False]
    session.fill(row)
    assert (row == expected).all()
    session.accept(ord("a"), 9)
    session.accept(ord("b"), 8)
    session.fill(row)
    assert set(allowed_ids(row)) == set(allowed_ids(expected)) | VOCABULARY.eos_token_ids


def test_every_error_becomes_one_of_the_constraint() -> None:
    error = ConstraintError("x")
    assert as_constraint_error(error) is error
    found = as_constraint_error(GrammarError("no", "1:2"))
    assert (found.message, found.location) == ("no (at 1:2)", "1:2")
    assert "KeyError: 'a'" in as_constraint_error(KeyError("a")).message
