"""Tokens in grains: every token is in one group, and masks made of groups are those of trying every token."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.token_index import coarse_token_trie
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.regular.characters.coarse_classes import LEVELS
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.long_tests import sized

RNG = random.Random(11)
LETTERS = [
    *"abcfgvwxyzABFGITVZ0159 .,:;-_/@%!?",
    "\t",
    "é",
    "あ",
    "\u3000",
    "\u2028",
    '"',
    "\\",
    "\\u00",
    "\\n",
    '",',
    '"]',
]
TEXTS = sorted(
    {bytes((byte,)) for byte in range(256)}
    | {"".join(RNG.choice(LETTERS) for _ in range(RNG.randint(1, 6))).encode() for _ in range(3000)}
    | {(RNG.choice("ab ") * RNG.randint(20, 45)).encode() for _ in range(60)}
    | {"é".encode() + b"\xe3", b"\xe3\x81", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80"}
)
END = len(TEXTS)
VOCABULARY = Vocabulary(
    (*TEXTS, b"", TEXTS[300]), frozenset((END,)), frozenset((END,)), END + 2
)  # the last one comes twice
ENGINE = VocabularyIndex(VOCABULARY)
BACKEND = RtlangBackend(ENGINE)


def in_grains(text: bytes, number: int) -> str | bytes:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return text
    if '"' in decoded or "\\" in decoded:
        return text
    level = LEVELS[number]
    return "".join(
        next((chr(g.example) for g in level if any(a <= ord(char) <= b for a, b in g.ranges)), char) for char in decoded
    )


def tokens_of(mask: NDArray[np.uint32]) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
    return found


@pytest.mark.parametrize("number", range(len(LEVELS)))
def test_a_group_is_the_tokens_that_are_the_same_in_grains(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse_token_trie, "_LARGE_GROUP", 5)
    tries = coarse_token_trie.coarse_token_tries(ENGINE.trie, ENGINE.num_words)
    expected: dict[str | bytes, list[int]] = {}
    for token_id, text in enumerate(VOCABULARY.token_bytes):
        if text and b"\xff" not in text:
            expected.setdefault(in_grains(text, number), []).append(token_id)
    trie = tries[number]
    groups = [trie.members[a:b].tolist() for a, b in zip(trie.offsets[:-1], trie.offsets[1:], strict=True)]
    assert sorted(sorted(group) for group in groups) == sorted(expected.values())
    assert (trie.large >= 0).any()
    some = np.array(sorted({*range(0, len(groups), 3), *np.flatnonzero(trie.large >= 0).tolist()}), dtype=np.int32)
    ids = [each for group in some.tolist() for each in groups[group]]
    assert trie.tokens(some).tolist() == ids
    assert trie.count(some) == len(ids)
    assert tokens_of(trie.mask(some)) == sorted(ids)
    assert tokens_of(trie.mask(some[:0])) == []


@pytest.mark.parametrize("share", [0.02, 0.4, 0.6, 0.98, 1.0])
def test_the_mask_of_groups_has_their_tokens_however_many_they_are(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coarse_token_trie, "_LARGE_GROUP", 5)
    for trie in coarse_token_trie.coarse_token_tries(ENGINE.trie, ENGINE.num_words):
        assert len(trie.blocks) > 2
        rng = random.Random(int(100 * share))
        some = [number for number in range(len(trie.large)) if rng.random() < share]
        expected = [each for group in some for each in trie.members[trie.offsets[group] : trie.offsets[group + 1]]]
        assert tokens_of(trie.mask(np.array(some, dtype=np.int32))) == sorted(expected)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": r"^(?:\S+\s+){0,2}\S+$"},
        {"pattern": r"^(?:\S+\s+){0,9}\S+$", "maxLength": 40},
        {"pattern": r"^[a-z ]*$", "maxLength": 80},
        {"pattern": r"^[a-z]{2,9}[0-5]?$"},
        {"pattern": r"^[^\s@]+@[a-f.]+$"},
        {"pattern": r"^[a-z]*$", "minLength": 3, "maxLength": 60},
        {"pattern": r"^[a-gé ]{2,40}$", "minLength": 5},
        {"format": "uri"},
        {"format": "email"},
        {"pattern": "^(?!ab).*[0-9]$"},
        {"pattern": r"^x.{0,12}$", "minLength": 3},
    ],
)
def test_masks_are_those_of_trying_every_token(schema: dict[str, object]) -> None:
    source = json.dumps({"type": "string", **schema})
    compare(Constraint(ConstraintKind.JSON_SCHEMA, source))


@pytest.mark.parametrize(
    "pattern", [r"[a-z ]*", r"(\S+\s+){0,3}\S+", r"(?=.*[0-9])(?=.*[A-F]).*", "[^x]{3,40}", r'"[a-f]*"\\?', r"\w+é?"]
)
def test_masks_of_patterns_are_those_of_trying_every_token(pattern: str) -> None:
    compare(Constraint(ConstraintKind.REGEX, pattern))


def compare(constraint: Constraint) -> None:
    grammar = BACKEND.compile(constraint)
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    rng = random.Random(7)
    for _ in range(sized(2, usual=1)):
        matcher = grammar.matcher()
        for _ in range(14):
            matcher.fill_bitmask(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            tried = []
            for token_id in range(VOCABULARY.vocab_size):
                if matcher.accept_token(token_id):
                    matcher.rollback(1)
                    tried.append(token_id)
            assert allowed == tried
            goes_on = [each for each in allowed if each != END and b'"' not in VOCABULARY.token_bytes[each]]
            if not (choices := goes_on or [each for each in allowed if each != END]):
                break
            assert matcher.accept_token(rng.choice(choices))


def test_the_tokens_that_end_a_string_are_grouped_by_their_ends() -> None:
    groups = ENGINE.string_ends
    found: dict[bytes, set[int]] = {}
    for number, (begin, end) in enumerate(zip(groups.offsets[:-1], groups.offsets[1:], strict=True)):
        texts = {VOCABULARY.token_bytes[t] for t in groups.members[begin:end].tolist()}
        ends = {_after_string(text) for text in texts}
        assert len(ends) == 1
        (only,) = ends
        assert only is not None
        found.setdefault(only, set()).add(number)
    assert all(len(numbers) == 1 for numbers in found.values())
    expected = [t for t, text in enumerate(VOCABULARY.token_bytes) if text and _after_string(text) is not None]
    assert sorted(groups.members.tolist()) == expected


def _after_string(text: bytes) -> bytes | None:
    """What a token has after the first quote if Python's json reads what is before it as the inside of a string."""
    for at, byte in enumerate(text):
        if byte == ord('"'):
            try:
                json.loads(b'"' + text[: at + 1])
            except ValueError:
                continue
            return text[at:]
    return None
