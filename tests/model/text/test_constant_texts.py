"""Constant texts are encoded once, keep their tokens, and take bounded memory."""

from __future__ import annotations

from random import Random

from rtlang.model.text.constant_texts import ConstantTexts


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
    texts = ConstantTexts(Characters(), max_chars=40)
    for _ in range(2000):
        text, is_start = "ab" * random.randint(0, 12), random.random() < 0.5
        assert list(texts.encode(text, is_start=is_start)) == plain.encode(text, is_start=is_start)
        kept = [key for key, *_ in texts._tokens]
        assert sum(map(len, kept)) == texts._num_chars <= 40
    assert texts.num_found > 100


def test_the_text_used_last_stays_and_one_that_is_too_long_is_not_kept() -> None:
    tokenizer = Characters()
    texts = ConstantTexts(tokenizer, max_chars=4)
    for text in ("aa", "bb", "aa", "cc", "aa", "x" * 9, "aa"):
        texts.encode(text, is_start=False)
    assert tokenizer.num_texts == 4
    texts.encode("bb", is_start=False)
    assert tokenizer.num_texts == 5
