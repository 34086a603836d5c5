"""Constant texts are encoded once, keep their tokens, and take bounded memory."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from rtlang.model.text.constant_texts import ENTRY_BYTES, MAX_BYTES, TOKEN_BYTES, ConstantTexts


class Characters:
    """A tokenizer of characters; a text at the start has one token more. It counts what it encodes."""

    def __init__(self) -> None:
        self.num_texts = 0

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        self.num_texts += 1
        return [0] * is_start + [ord(character) for character in text]


def test_a_text_is_encoded_once_for_each_place() -> None:
    tokenizer = Characters()
    texts = ConstantTexts(tokenizer)
    for _ in range(3):
        assert texts.encode("ab", is_start=False) == (97, 98)
        assert texts.encode("ab", is_start=True) == (0, 97, 98)
    assert (tokenizer.num_texts, texts.num_encoded, texts.num_found) == (2, 2, 4)


def test_random_texts_have_their_tokens_within_the_bound() -> None:
    random, plain = Random(0), Characters()
    texts = ConstantTexts(Characters(), max_bytes=2000)
    for _ in range(2000):
        text, is_start = "ab" * random.randint(0, 12), random.random() < 0.5
        assert list(texts.encode(text, is_start=is_start)) == plain.encode(text, is_start=is_start)
        kept = texts._tokens.items()
        sizes = [ENTRY_BYTES + len(key[0]) + TOKEN_BYTES * len(tokens) for key, tokens in kept]
        assert sum(sizes) == texts._num_bytes <= 2000
    assert texts.num_found > 100


def test_the_text_used_last_stays_and_one_that_is_too_long_is_not_kept() -> None:
    tokenizer = Characters()
    texts = ConstantTexts(tokenizer, max_bytes=2 * (ENTRY_BYTES + 2 + 2 * TOKEN_BYTES))
    for text in ("aa", "bb", "aa", "cc", "aa", "x" * 99, "aa"):
        texts.encode(text, is_start=False)
    assert tokenizer.num_texts == 4
    texts.encode("bb", is_start=False)
    assert tokenizer.num_texts == 5


class Distinct:
    """A tokenizer whose tokens are objects of their own, one for so many characters."""

    def __init__(self, num_chars: int) -> None:
        self.num_chars = num_chars

    def encode(self, text: str, *, is_start: bool, allow_special: bool = False) -> list[int]:
        return [hash((text, number)) % 100_000 + 300 for number in range(max(1, len(text) // self.num_chars))]


@pytest.mark.parametrize(("length", "num_chars"), [(8, 4), (20, 1), (100, 4), (4000, 4)])
def test_texts_of_every_length_take_the_memory_of_the_bound(length: int, num_chars: int) -> None:
    bound = MAX_BYTES // 64
    num_texts = 2 * bound // (ENTRY_BYTES + length + TOKEN_BYTES * length // num_chars)
    texts = ConstantTexts(Distinct(num_chars), max_bytes=bound)
    tracemalloc.start()
    try:
        for number in range(num_texts):
            texts.encode(f"{number:08d}" + "x" * (length - 8), is_start=True)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.4 * bound < used < 1.3 * bound
