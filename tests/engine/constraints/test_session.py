"""One request's way through its constraint: tokens that are replaced, ends, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from rtlang.contract.errors import ConstraintError
from rtlang.engine.constraints.session import ConstraintSession, MaskTimes, as_constraint_error
from rtlang_grammars import CompletionSearch, Constraint, ConstraintKind, GrammarError, RtlangBackend, TokenBudget
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
