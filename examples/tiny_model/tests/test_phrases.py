"""Phrases in two parts, and which part a draw may use."""

import subprocess
import sys

from tiny_model.corpus.phrases import ANY_ROLE, ROLES, Phrases, is_held, phrases, say, say_wording
from tiny_model.corpus.words import Draw

GREETING = phrases("hi|hello||good day")


def test_phrases_are_written_in_two_parts() -> None:
    assert Phrases(("hi", "hello"), ("good day",)) == GREETING


def test_texts_and_wordings_follow_their_own_splits() -> None:
    draw = Draw(1, templates="test")
    assert say(draw, GREETING) == "good day"
    assert say_wording(draw, GREETING) in GREETING.known
    assert say(Draw(1), GREETING) in GREETING.known


def test_a_fifth_of_the_composed_phrases_is_held_back_and_the_same_in_every_process() -> None:
    texts = [f"the {number} is good" for number in range(2000)]
    assert 0.15 < sum(map(is_held, texts)) / len(texts) < 0.25
    program = "from tiny_model.corpus.phrases import is_held; print([is_held(f'the {n} is good') for n in range(50)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([is_held(text) for text in texts[:50]])


def test_every_role_has_traits_and_mottos() -> None:
    for traits, mottos in (*ROLES.values(), ANY_ROLE):
        assert len(traits) == len(set(traits)) >= 4
        assert all(motto.endswith(".") for motto in mottos)
