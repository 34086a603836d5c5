"""Batches and trees against one matcher at a time, and the interpreter lock while rows are written."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarMatcher, RtlangBackend, fill_batch, fill_tree
from rtlang_grammars.machine.token_index.mask import Mask, write_rows
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
WORDS = VOCABULARY.num_mask_words
CONSTRAINTS = [
    Constraint(
        ConstraintKind.JSON_SCHEMA,
        '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "tags": {"type": "array"}}}',
    ),
    Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "array", "items": {"type": "string", "pattern": "^(a|b)+c?$"}}'),
    Constraint(ConstraintKind.REGEX, "(SELECT|select) [a-z]+( WHERE .*)?"),
    Constraint(ConstraintKind.LARK, 'start: "select" NAME ("," NAME)*\nNAME: /[a-z]+/\n%ignore " "\n'),
    Constraint(ConstraintKind.GBNF, 'root ::= "(" root ")" | [a-z]*'),
]


class Foreign:
    """A matcher of another library, as the batch sees it."""

    def __init__(self, matcher: GrammarMatcher) -> None:
        self._matcher = matcher

    def __getattr__(self, name: str) -> object:
        return getattr(self._matcher, name)

    def fork(self) -> Foreign:
        return Foreign(self._matcher.fork())


@pytest.fixture(scope="module")
def starts() -> list[GrammarMatcher]:
    backend = RtlangBackend.create(VOCABULARY)
    return [backend.compile(constraint).matcher() for constraint in CONSTRAINTS]


def row_of(matcher: GrammarMatcher) -> list[int]:
    row = np.full(WORDS, 5, dtype=np.int32)
    matcher.fill_bitmask(row)
    return row.tolist()  # type: ignore[no-any-return]


def wandered(start: GrammarMatcher, rng: random.Random) -> GrammarMatcher:
    """A fork after some random tokens, end tokens among them."""
    matcher = start.fork()
    for _ in range(rng.randrange(9)):
        row = np.empty(WORDS, dtype=np.int32)
        matcher.fill_bitmask(row)
        tokens = sorted(allowed_ids(row))
        if not tokens:
            break
        assert matcher.accept_token(rng.choice(tokens))
    return matcher


def test_a_batch_of_different_grammars_has_the_rows_of_its_matchers(starts: list[GrammarMatcher]) -> None:
    rng = random.Random(4)
    num_ended = 0
    for _ in range(60):
        matchers = [wandered(rng.choice(starts), rng) for _ in range(rng.randrange(12))]
        matchers = [Foreign(each) if rng.random() < 0.2 else each for each in matchers]
        bitmask = np.full((len(matchers), WORDS), 9, dtype=np.int32)
        fill_batch(matchers, bitmask)
        assert bitmask.tolist() == [row_of(matcher) for matcher in matchers]
        num_ended += sum(not row.any() for row in bitmask)
    assert num_ended > 5


def test_a_tree_has_the_rows_of_walks_along_its_branches(starts: list[GrammarMatcher]) -> None:
    rng = random.Random(5)
    outcomes = set()
    for turn in range(60):
        matcher = wandered(rng.choice(starts), rng)
        if turn % 4 == 0:
            matcher = Foreign(matcher)
        before = row_of(matcher)
        nodes = [matcher.fork()]  # the last one is the text so far
        token_ids, parents = [], []
        expected: list[list[int]] = []
        is_allowed: list[bool] = []
        states: list[GrammarMatcher | None] = []
        for index in range(rng.randrange(14)):
            parent = rng.randrange(-1, index)
            state = nodes[0] if parent < 0 else states[parent]
            row = np.empty(WORDS, dtype=np.int32)
            (state or nodes[0]).fill_bitmask(row)
            tokens = sorted(allowed_ids(row)) or [0]
            token = rng.choice(tokens) if rng.random() < 0.8 else rng.randrange(VOCABULARY.vocab_size)
            following = None if state is None else state.fork()
            if following is not None and not following.accept_token(token):
                following = None
            states.append(following)
            token_ids.append(token)
            parents.append(parent)
            is_allowed.append(following is not None)
            expected.append([0] * WORDS if following is None else row_of(following))
        bitmask = np.full((len(token_ids), WORDS), 9, dtype=np.int32)
        assert fill_tree(matcher, token_ids, parents, bitmask) == is_allowed
        assert bitmask.tolist() == expected
        assert row_of(matcher) == before
        outcomes.update(is_allowed)
    assert outcomes == {False, True}


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((3, WORDS), np.int32), ((2, WORDS - 1), np.int32), ((2, WORDS), np.int64), ((WORDS,), np.int32)],
)
def test_other_arrays_are_refused(starts: list[GrammarMatcher], shape: tuple[int, ...], kind: type) -> None:
    with pytest.raises(ValueError, match="contiguous int32"):
        fill_batch(starts[:2], np.zeros(shape, dtype=kind))
    with pytest.raises(ValueError, match="contiguous int32"):
        fill_tree(starts[1], [ord("["), ord("]")], [-1, 0], np.zeros(shape, dtype=kind))
    with pytest.raises(ValueError, match="contiguous int32"):
        fill_batch(starts[:2], np.zeros((2, 2 * WORDS), dtype=np.int32)[:, ::2])


def test_a_parent_must_come_first(starts: list[GrammarMatcher]) -> None:
    bitmask = np.zeros((2, WORDS), dtype=np.int32)
    for parents in ([-1, 1], [0, 0], [-2, 0]):
        with pytest.raises(ValueError, match="an earlier node"):
            fill_tree(starts[0], [1, 2], parents, bitmask)
    with pytest.raises(ValueError, match="as many parents"):
        fill_tree(starts[0], [1, 2], [-1], bitmask)


@pytest.fixture
def patient_threads() -> Iterator[None]:
    """Threads give the interpreter lock away only where they wait or release it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("patient_threads")
def test_other_threads_run_while_rows_are_written() -> None:
    num_rows, num_words = 4000, 8192  # 130 MB, some 20 ms
    base, ids = np.arange(num_words, dtype=np.uint32), np.arange(0, 32 * num_words, 64, dtype=np.int32)
    masks: list[Mask | None] = [Mask(base, ids)] * num_rows
    bitmask = np.zeros((num_rows, num_words), dtype=np.int32)
    write_rows(masks[:1], bitmask[:1])  # compiled from here on
    ticks = 0
    seen: list[int] = []

    def write() -> None:
        for _ in range(20):
            begin = ticks
            write_rows(masks, bitmask)
            seen.append(ticks - begin)

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        ticks += 1
        time.sleep(0)
    assert max(seen) > 0, "the writing thread never gave the lock away"
