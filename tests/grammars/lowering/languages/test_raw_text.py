"""Raw text with a bound on its tokens, against a search over all divisions of token sequences."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.constraint import Constraint
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import any_of, raw_text, repeat, sequence
from rtlang_grammars.spec.vocabulary import Vocabulary
from rtlang_grammars.storage.grammar_store import GrammarStore
from tests.support.grammars.vocabularies import allowed_ids

END = 0
PIECES = [
    b"",
    b"a",
    b"b",
    b"ab",
    b"<",
    b">",
    b"<t>",
    b"<t>a",
    b"b<",
    b"a</t>b",
    b"</t>",
    b"</t",
    "é".encode(),
    b"\xc3",
    b"\xa9",
    b"\xa9a",
    b"t",
    b"/",
    b"\x80",
]
VOCABULARY = Vocabulary(tuple(PIECES), frozenset((END,)), frozenset((END,)), len(PIECES))
BOUNDS: list[tuple[int, int | None, tuple[str, ...]]] = [
    (0, None, ()),
    (1, None, ()),
    (2, None, ("ab",)),
    (3, 3, ()),
    (4, None, ("</t>", "é")),
]


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


def mask_of(matcher: MachineMatcher) -> set[int]:
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher.fill_bitmask(row)
    return set(allowed_ids(row))


def tag_of(max_tokens: int, max_chars: int | None, excludes: Sequence[str]) -> Constraint:
    schema = True if max_chars is None else {"type": "string", "maxLength": max_chars}
    return sequence("<t>", raw_text(schema, excludes=excludes, max_tokens=max_tokens), "</t>")


def is_text(ids: Sequence[int], max_tokens: int, max_chars: int | None, excludes: Sequence[str]) -> bool:
    """Whether tokens are "<t>", a content with at most as many tokens ending in it, and "</t>"."""
    data = b"".join(PIECES[i] for i in ids)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    if len(text) < 7 or not (text.startswith("<t>") and text.endswith("</t>")):
        return False
    content, last = text[3:-4], len(data) - 4
    if any(each in content for each in excludes) or (max_chars is not None and len(content) > max_chars):
        return False
    ends, at = [], 0
    for i in ids:
        at += len(PIECES[i])
        if 3 < at <= last:
            ends.append(at)
    if max_tokens == 0 or len(ends) <= max_tokens:
        return max_tokens > 0 or not content
    bound = ends[max_tokens - 1]
    while data[bound] & 0xC0 == 0x80:  # the character that this token began is completed
        bound += 1
    return last <= bound


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_tokens_that_end_in_a_text_are_counted(bound: tuple[int, int | None, tuple[str, ...]]) -> None:
    grammar, rng, num_texts = backend().compile(tag_of(*bound)), random.Random(0), 0
    for _ in range(1200):
        ids = [rng.choice((6, 6, 7)), *(rng.randrange(1, len(PIECES)) for _ in range(rng.randrange(6)))]
        ids += rng.choice(([10], [9], [8, 11, 5], [11, 5]))
        expected = is_text(ids, *bound)
        num_texts += expected
        matcher = grammar.matcher()
        assert (all(map(matcher.accept_token, ids)) and matcher.is_accepting) == expected, ids
        assert grammar.matcher().accepts([*ids, END]) == expected
    assert num_texts or bound[0] == 0


def test_masks_near_the_bound_lead_to_an_end() -> None:
    rng = random.Random(1)
    for bound in BOUNDS:
        grammar = backend().compile(sequence(repeat(any_of("a", tag_of(*bound))), "b"))
        for _ in range(40):
            matcher, ids = grammar.matcher(), list[int]()
            while len(ids) < 30:
                allowed = mask_of(matcher)
                assert allowed == {i for i in range(len(PIECES)) if matcher.fork().accept_token(i)}
                assert allowed, ids
                ids.append(rng.choice(sorted(allowed)))
                if ids[-1] == END:
                    break
                before = matcher.fork()
                assert matcher.accept_token(ids[-1])
                if rng.random() < 0.2:  # counts are a part of the state
                    matcher.rollback(1)
                    assert mask_of(matcher) == allowed
                    matcher = before
                    assert matcher.accept_token(ids[-1])


def test_a_text_that_cannot_end_everywhere_has_no_bound_on_its_tokens() -> None:
    with pytest.raises(GrammarError, match="max_tokens: every beginning of the text must be able to end"):
        backend().compile(sequence("<", raw_text({"type": "string", "minLength": 2}, max_tokens=3), ">"))
    with pytest.raises(GrammarError, match="max_tokens = -1: expected an integer from 0"):
        backend().compile(raw_text(max_tokens=-1))


def test_stored_tables_count_tokens(tmp_path: Path) -> None:
    bound, rng = BOUNDS[2], random.Random(2)
    for expected_hits in (0, 1):
        store = GrammarStore(tmp_path, min_seconds=0.0)
        grammar = RtlangBackend.create(VOCABULARY, store=store).compile(tag_of(*bound))
        assert store.counts.hits == expected_hits
        for num_tokens in range(5):
            ids = [6, *rng.choices((1, 2), k=num_tokens), 10]
            matcher = grammar.matcher()
            assert all(map(matcher.accept_token, ids)) == is_text(ids, *bound)
        store.flush()
