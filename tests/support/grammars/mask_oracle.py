"""Masks against an independent check of texts: every token that is allowed can be completed, every token that leads to a text is allowed.

The check decides whole texts only (`re`, `lark`, `jsonschema` on what `json` reads). Soundness: behind a token the matcher's own way out is
taken, and the check judges the text. Completeness: a set of texts that the check accepts, found without the matcher, says which tokens must
be allowed at every one of their prefixes. Both use tokens of many bytes, which cross every joint of the texts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.vocabularies import allowed_ids

MAX_TOKEN = 8
_PROBES = 5
_STEPS = 12


def vocabulary_of(texts: Sequence[bytes], rng: random.Random, size: int = 200) -> Vocabulary:
    """All bytes, random pieces of texts, and an end token."""
    pieces = [bytes([byte]) for byte in range(256)]
    pool = [text for text in texts if len(text) > 1]
    for _ in range(size if pool else 0):
        text = rng.choice(pool)
        start = rng.randrange(len(text) - 1)
        pieces.append(text[start : start + rng.randint(2, MAX_TOKEN)])
    end = len(pieces)
    return Vocabulary((*pieces, b"<end>"), frozenset({end}), frozenset({end}), end + 1)


class MaskOracle:
    """Walks one grammar and asserts that its masks are right.

    Args:
        start: makes a matcher at the start.
        vocabulary: of the matcher.
        is_valid: the independent check of a whole text; None where it cannot say.
        texts: accepted texts that were found without the matcher.
        context: shown where an assertion fails.
    """

    def __init__(
        self,
        start: Callable[[], MachineMatcher],
        vocabulary: Vocabulary,
        is_valid: Callable[[bytes], bool | None],
        texts: Sequence[bytes],
        context: object,
    ) -> None:
        self._start, self._vocabulary, self._is_valid = start, vocabulary, is_valid
        self._texts, self._context = sorted(set(texts)), context
        self._ids: dict[bytes, list[int]] = {}
        for token_id, piece in enumerate(vocabulary.token_bytes):
            if piece and token_id not in vocabulary.silent_ids:
                self._ids.setdefault(piece, []).append(token_id)

    def walk(self, rng: random.Random) -> None:
        """One random way through the masks, towards a text that is accepted or anywhere."""
        matcher, prefix = self._start(), b""
        aim = rng.choice(self._texts) if self._texts and rng.random() < 0.7 else None
        for _ in range(_STEPS):
            allowed = self._mask(matcher)
            tokens = sorted(allowed - self._vocabulary.eos_token_ids)
            self._check_completeness(prefix, allowed)
            self._check_soundness(matcher, prefix, allowed, rng.sample(tokens, min(_PROBES, len(tokens))))
            if not tokens:
                return
            token = rng.choice(tokens)
            if aim is not None and aim.startswith(prefix) and aim != prefix:
                token = rng.choice(self._on_the_way(aim[len(prefix) :]))
            assert matcher.accept_token(token), (self._context, prefix, self._vocabulary.token_bytes[token])
            prefix += self._vocabulary.token_bytes[token]

    def _mask(self, matcher: MachineMatcher) -> set[int]:
        row = np.empty(self._vocabulary.num_mask_words, dtype=np.int32)
        matcher.fill_bitmask(row)
        return set(allowed_ids(row))

    def _on_the_way(self, rest: bytes) -> list[int]:
        lengths = range(1, min(MAX_TOKEN, len(rest)) + 1)
        return [token for length in lengths for token in self._ids.get(rest[:length], ())]

    def _check_completeness(self, prefix: bytes, allowed: set[int]) -> None:
        for text in self._texts:
            if not text.startswith(prefix):
                continue
            if text == prefix:
                assert self._vocabulary.eos_token_ids <= allowed, (self._context, prefix, "may end here")
            for token in self._on_the_way(text[len(prefix) :]):
                assert token in allowed, (self._context, prefix, self._vocabulary.token_bytes[token], text)

    def _check_soundness(
        self, matcher: MachineMatcher, prefix: bytes, allowed: set[int], probes: Sequence[int]
    ) -> None:
        if allowed & self._vocabulary.eos_token_ids:
            assert self._is_valid(prefix) is not False, (self._context, prefix, "must not end here")
        for token in probes:
            fork = matcher.fork()
            assert fork.accept_token(token)
            closing = fork.closing_bytes()
            piece = self._vocabulary.token_bytes[token]
            assert closing is not None, (self._context, prefix, piece, "cannot be completed")
            text = prefix + piece + closing
            assert self._is_valid(text) is not False, (self._context, prefix, piece, text)
