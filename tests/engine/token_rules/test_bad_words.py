"""Forbidden words, against transformers and by trying every token."""

from __future__ import annotations

import math
import random

import torch
from transformers import NoBadWordsLogitsProcessor

from rtlang.engine.token_rules.bad_words import BadWords


def letters(text: str) -> list[int]:
    """A token for each letter; a space and the letter after it are one, as in byte-pair vocabularies."""
    found: list[int] = []
    for place, letter in enumerate(text):
        if letter == " " and place + 1 < len(text):
            continue
        found.append(ord(letter) - 96 + 26 * (text[place - 1 : place] == " ") if letter.isalpha() else 60)
    return found


def test_the_last_token_of_a_word_is_banned_after_its_others() -> None:
    rng = random.Random(1)
    for _ in range(300):
        words = ["".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4))]
        output = [rng.choice((1, 2, 3, 27, 28, 29)) for _ in range(rng.randint(0, 12))]
        sequences = {tuple(letters(form)) for word in words for form in (word, f" {word}")}
        ids = torch.tensor([output], dtype=torch.long).reshape(1, -1)
        processor = NoBadWordsLogitsProcessor([list(sequence) for sequence in sequences], eos_token_id=69)
        wanted = torch.nonzero(processor(ids, torch.zeros(1, 70))[0] == -math.inf)[:, 0].tolist()
        found = BadWords(words, letters).biases(output)
        assert set(found.values()) <= {-math.inf}
        assert sorted(found) == wanted


def test_no_sequence_of_a_word_is_ever_completed_and_all_else_can_be_written() -> None:
    """Texts are walked token by token, so that each one is allowed exactly if it contains no word."""
    rule = BadWords(["ab", " c"], letters)
    forbidden = [tuple(letters(form)) for form in ("ab", " ab", "c", " c")]
    texts: list[tuple[int, ...]] = [()]
    num_tried = 0
    for _ in range(4):
        longer = []
        for text in texts:
            banned = rule.biases(text)
            for token_id in (1, 2, 3, 27, 28, 29):
                written = (*text, token_id)
                has_word = any(written[-len(word) :] == word for word in forbidden)
                assert (token_id in banned) == has_word
                num_tried += 1
                if not has_word:
                    longer.append(written)
        texts = longer
    assert num_tried > 300


def test_white_space_is_a_word_as_it_is() -> None:
    assert BadWords([" \n"], lambda text: [ord(letter) for letter in text]).biases([32]) == {10: -math.inf}
