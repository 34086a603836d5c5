"""Random texts of a constraint, walked byte by byte through its masks, without a model."""

from __future__ import annotations

import functools
import random

import numpy as np

from rtlang_grammars import Constraint, RtlangBackend, Vocabulary
from rtlang_grammars.api.rtlang_backend import RtlangGrammar

_END = 256


@functools.cache
def byte_backend() -> RtlangBackend:
    """A backend in whose vocabulary every byte is a token."""
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    return RtlangBackend.create(Vocabulary(tokens, frozenset({_END}), frozenset({_END}), _END + 1), allow_checked=True)


def random_texts(constraint: Constraint, seeds: range) -> list[str]:
    """Texts of a constraint, one for each seed; those that its check refuses are left out, since an engine would generate them again."""
    grammar = byte_backend().compile(constraint)
    texts = [_random_text(grammar, random.Random(seed)).decode() for seed in seeds]
    check = grammar.value_check
    return [text for text in texts if check is None or check.error_in(text) is None]


def accepts(constraint: Constraint, text: str) -> bool:
    """Whether the masks of a constraint allow a text."""
    matcher = byte_backend().compile(constraint).matcher()
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.is_accepting


def _random_text(grammar: RtlangGrammar, rng: random.Random) -> bytes:
    """A text as of a model at a high temperature: any bytes in a third of the texts, else mostly printable ones, and digits."""
    matcher, text, is_wild = grammar.matcher(), b"", rng.random() < 0.35
    length = rng.choice([10, 30, 80, 200])
    row = np.zeros((_END + 32) // 32, dtype=np.int32)
    while len(text) < length:
        matcher.fill_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[:_END]).tolist()
        if not allowed or (matcher.is_accepting and rng.random() < 0.25):
            return text
        if not is_wild or rng.random() < 0.7:
            allowed = [byte for byte in allowed if 33 <= byte < 127 and byte != 92] or allowed
            digits = [byte for byte in allowed if 48 <= byte < 58]
            allowed = digits if digits and rng.random() < 0.3 else allowed
        byte = rng.choice(allowed)
        assert matcher.accept_token(byte)
        text += bytes([byte])
    end = matcher.closing_bytes()
    assert end is not None
    return text + end
