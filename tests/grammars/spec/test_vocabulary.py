"""Vocabulary: which ids are text."""

from __future__ import annotations

import pytest

from rtlang_grammars.spec.vocabulary import Vocabulary


def test_text_leaves_out_special_end_and_padding_tokens() -> None:
    vocabulary = Vocabulary((b"a", b"<s>", b"b", b"</s>"), frozenset({3}), frozenset({1}), 10)
    assert vocabulary.text_of([0, 1, 2, 3, 7]) == b"ab"
    assert vocabulary.ids_by_bytes() == {b"a": 0, b"b": 2}


def test_of_equal_tokens_the_lowest_id_spells() -> None:
    assert Vocabulary((b"x", b"x", b""), frozenset(), frozenset(), 3).ids_by_bytes() == {b"x": 0}


@pytest.mark.parametrize(("vocab_size", "words"), [(1, 1), (32, 1), (33, 2), (151936, 4748)])
def test_mask_words_cover_the_logits(vocab_size: int, words: int) -> None:
    assert Vocabulary((b"a",), frozenset(), frozenset(), vocab_size).num_mask_words == words


@pytest.mark.parametrize(("eos", "special", "size"), [({5}, set(), 5), (set(), {-1}, 5), (set(), set(), 1)])
def test_ids_outside_are_refused(eos: set[int], special: set[int], size: int) -> None:
    with pytest.raises(ValueError, match=r"eos_token_ids|special_token_ids|vocab_size"):
        Vocabulary((b"a", b"b"), frozenset(eos), frozenset(special), size)
