"""Word lists and random words."""

import re

import pytest
from tiny_model.corpus import lexicon
from tiny_model.corpus.words import Draw, article, countable, listing, plural

HELD_OUT = {*lexicon.HELD_FIRST_NAMES, *lexicon.HELD_FAMILY_NAMES, *lexicon.HELD_CITIES, *lexicon.HELD_ITEMS}


def drawn(draw: Draw) -> set[str]:
    texts = [text for _ in range(3000) for text in (draw.person(), draw.city(), draw.item())]
    return {word for text in texts for word in text.split()}


def test_training_never_draws_a_held_out_word() -> None:
    assert not drawn(Draw(1, "train")) & HELD_OUT


def test_the_test_split_draws_every_held_out_word() -> None:
    assert drawn(Draw(1, "test")) >= HELD_OUT


def test_held_out_words_are_in_no_training_list() -> None:
    assert not HELD_OUT & {*lexicon.FIRST_NAMES, *lexicon.FAMILY_NAMES, *lexicon.CITIES, *lexicon.ITEMS}


def test_enough_words_are_held_out() -> None:
    lists = (lexicon.HELD_FIRST_NAMES, lexicon.HELD_FAMILY_NAMES, lexicon.HELD_CITIES, lexicon.HELD_ITEMS)
    assert [len(set(each)) >= least for each, least in zip(lists, (40, 30, 30, 40), strict=True)] == [True] * 4


def test_no_random_word_is_held_out() -> None:
    draw = Draw(4)
    assert not {draw.made_up() for _ in range(30_000)} & {word.lower() for word in HELD_OUT}


def test_a_countable_word_comes_back_from_its_plural() -> None:
    draw = Draw(5)
    assert all(plural(word) == word + "s" for word in (countable(draw.made_up()) for _ in range(2000)))


def test_the_same_seed_draws_the_same_words() -> None:
    one, two = Draw(3), Draw(3)
    assert [one.made_up() for _ in range(50)] == [two.made_up() for _ in range(50)]


def test_almost_half_of_the_names_are_a_first_name_alone() -> None:
    draw = Draw(6)
    single = sum(" " not in draw.full_name() for _ in range(4000))
    assert 0.42 < single / 4000 < 0.48


def test_a_made_up_word_is_lower_case_letters() -> None:
    draw = Draw(2)
    assert all(re.fullmatch("[a-z]{2,}", draw.made_up()) for _ in range(500))


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("pen", "pens"),
        ("dish", "dishes"),
        ("box", "boxes"),
        ("puppy", "puppies"),
        ("toy", "toys"),
        ("watch", "watches"),
    ],
)
def test_plural(noun: str, expected: str) -> None:
    assert plural(noun) == expected


def test_article_and_listing_follow_english() -> None:
    assert [article("owl"), article("cat")] == ["an owl", "a cat"]
    assert [listing(["a"]), listing(["a", "b"]), listing(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
