"""A budget that may do limited work: it stops without a trace, and later gives what it would have given at once."""

from __future__ import annotations

import json
import random
import threading

import numpy as np
import pytest

from rtlang_grammars import CompletionSearch, Constraint, ConstraintKind, GrammarMatcher, RtlangBackend, TokenBudget
from rtlang_grammars.spec.work_limit import WorkLimit, WorkLimitError
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary, spell

VOCABULARY = small_vocabulary()
SEARCH = CompletionSearch(VOCABULARY)
MEMBERS = {f"member_{i}": {"type": "array", "items": {"enum": [True, None]}} for i in range(40)}
SCHEMA = {"type": "object", "properties": MEMBERS, "required": list(MEMBERS), "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(ab|cd)+$"}, "b": {"$ref": "#"}}}
CALLS = 'start: "f(" list? ")"\nlist: item ("," item)*\nitem: NAME | "[" list "]" | start\nNAME: /[a-z]{2,9}/'
CONSTRAINTS = {
    "members": (Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA)), 900),
    "open": (Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(OPEN)), 60),
    "lexed": (Constraint(ConstraintKind.LARK, CALLS), 30),
}


def budget_of(constraint: Constraint, max_tokens: int) -> tuple[GrammarMatcher, TokenBudget]:
    matcher = RtlangBackend.create(VOCABULARY).compile(constraint).matcher()
    path = SEARCH.find(matcher, max_tokens)
    assert path is not None
    return matcher, TokenBudget(SEARCH, path)


def advance(matcher: GrammarMatcher, budget: TokenBudget, token_id: int, left: int, limits: list[int]) -> int | None:
    """As `advance`, first with limited work."""
    for units in limits:
        before = matcher.is_accepting, matcher.is_terminated, budget.num_tokens_needed, budget.next_token()
        try:
            return budget.advance(matcher, token_id, left, WorkLimit(units))
        except WorkLimitError:
            after = matcher.is_accepting, matcher.is_terminated, budget.num_tokens_needed, budget.next_token()
            assert after == before
    return budget.advance(matcher, token_id, left)


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(3))
def test_limited_work_changes_no_token(name: str, seed: int) -> None:
    constraint, max_tokens = CONSTRAINTS[name]
    matchers = [budget_of(constraint, max_tokens) for _ in range(2)]
    rng, row = random.Random(seed), np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    for left in range(max_tokens, 0, -1):
        if matchers[0][0].is_terminated:
            break
        matchers[0][0].fill_bitmask(row)
        tokens = [each for each in allowed_ids(row) if each not in VOCABULARY.eos_token_ids]
        if not tokens:
            break
        token_id = rng.choice(tokens)
        limits = [rng.randrange(6), rng.randrange(60)]
        found = [
            matchers[0][1].advance(matchers[0][0], token_id, left),
            advance(*matchers[1], token_id, left, limits),
        ]
        assert found[0] == found[1]
        if found[0] is None:
            break
    assert matchers[0][0].is_accepting
    assert matchers[1][0].is_accepting


def test_a_search_of_much_work_is_stopped_early() -> None:
    """The texts of 2,000 frames are not computed within a limit, and neither is a path of 30 kB followed or cut into tokens."""
    names = {f"field_{i}": {"type": "string"} for i in range(2000)}
    schema = {"type": "object", "properties": names, "required": list(names)}
    matcher, budget = budget_of(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema)), 30_000)
    for token_id in spell(VOCABULARY, "{\n"):
        work = WorkLimit(200)
        try:
            budget.advance(matcher, token_id, 29_000, work)
        except WorkLimitError:
            assert budget.advance(matcher, token_id, 29_000) is not None
        else:
            assert work.left >= 0
    with pytest.raises(WorkLimitError):
        budget.advance(matcher, ord(" "), 28_000, WorkLimit(200))


@pytest.mark.parametrize("name", ["members", "lexed"])
def test_a_limited_search_does_not_wait_for_another_thread(name: str) -> None:
    matcher, budget = budget_of(*CONSTRAINTS[name])
    completion = matcher._completion  # type: ignore[attr-defined]
    lock = completion._lock if name == "members" else completion._grammar.lock
    may_end, is_held = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    try:
        completion._found.clear()
        with pytest.raises(WorkLimitError):
            matcher.closing_bytes(WorkLimit(1000))
        assert matcher.is_busy is (name == "lexed")  # type: ignore[attr-defined]
    finally:
        may_end.set()
        thread.join()
    assert matcher.closing_bytes(WorkLimit(1000)) is not None
    assert not matcher.is_busy  # type: ignore[attr-defined]
    assert budget.num_tokens_needed


def test_a_path_knows_its_cost_after_thousands_of_others() -> None:
    """Each path only points to the one before it until its cost is asked for."""
    texts = [b"x" * (i % 3) + b"]" * 40 for i in range(5000)]
    path = None
    for text in texts:
        matcher = _Closing(text)
        path = SEARCH.find(matcher, 10_000, path)  # type: ignore[arg-type]
        assert path is not None
        assert path._costs is None
    assert path is not None
    fresh = SEARCH.find(_Closing(texts[-1]), 10_000)  # type: ignore[arg-type]
    assert fresh is not None
    assert path.cost() == fresh.cost()
    assert path.token_ids() == fresh.token_ids()


class _Closing:
    """A matcher whose text is completed by some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def closing_bytes(self, work: WorkLimit | None = None) -> bytes:
        return self._data
