"""Coarse classes: their members are interchangeable where a state says so."""

from __future__ import annotations

import random

import pytest

from rtlang_grammars.regular.automata.byte_automaton import ByteAutomaton
from rtlang_grammars.regular.characters.coarse_classes import ALL_LEVELS, LEVELS, CoarseClass
from rtlang_grammars.regular.characters.code_points import MAX_CODE_POINT
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.regular.string_formats.formats import format_language
from rtlang_grammars.spec.limits import Budget

UNSPLIT = [
    r"(?:\S+\s+){0,3}\S+",
    r"[a-z0-9-]+",
    r"https?://[^ ]+",
    r"(?!ab).*",
    r"[\da-fA-F]+[a-z]*",
    r"[^\n]{2,5}",
    "uri",
    "uri-template",
    "iri",
    "email",
]
SPLIT = [r".*(?<=x)y.*", r"\w+(?:ab)?", r"[^\n]{2,5}é*"]


def member(grain: CoarseClass, rng: random.Random) -> str:
    first, last = rng.choice(grain.ranges)
    return chr(rng.randint(first, last))


@pytest.mark.parametrize("level", LEVELS)
def test_coarse_classes_are_disjoint_and_contain_their_example(level: tuple[CoarseClass, ...]) -> None:
    seen: set[int] = set()
    for grain in level:
        points = {point for first, last in grain.ranges for point in range(first, last + 1)}
        assert grain.example in points
        assert len(chr(grain.example).encode()) == len(chr(min(points)).encode())
        assert max(points) <= MAX_CODE_POINT
        assert not points & seen
        assert not points & {*range(0xD800, 0xE000), *b'"\\\n', 0x2028, 0x2029}
        seen |= points


def follow(automaton: ByteAutomaton, state: int, text: str) -> int:
    for byte in text.encode():
        state = int(automaton.row(state)[byte]) if state >= 0 else -1
    return state


@pytest.mark.parametrize("language", [*UNSPLIT, *SPLIT])
def test_members_of_an_unsplit_class_are_interchangeable(language: str) -> None:
    found = format_language(language) or compile_regex(language)
    automaton = found.automaton(Budget())
    rng = random.Random(3)
    alphabet = [*"abfghpstvxyzABGITZ019 .-:/@\t", "é", "\u3000", "\u2028", "あ"]
    checked = 0
    for _ in range(200):
        state, texts = automaton.start, ""
        for _ in range(rng.randint(0, 6)):
            ways = [(each, after) for each in alphabet if (after := follow(automaton, state, each)) >= 0]
            if ways:
                letter, state = rng.choice(ways)
                texts += letter
        levels = automaton.coarse_levels(state)
        for number, level in enumerate(LEVELS):
            if not levels >> number & 1:
                continue
            letters = [rng.choice(alphabet) for _ in range(rng.randint(1, 5))]
            by_letter = {
                letter: [g for g in level if any(a <= ord(letter) <= b for a, b in g.ranges)] for letter in letters
            }
            others = [member(by_letter[each][0], rng) if by_letter[each] else each for each in letters]
            answers = [found.accepts(texts + "".join(each)) for each in (letters, others)]
            assert answers[0] == answers[1], (texts, letters, others)
            checked += 1
    assert (checked > 20) is (language in UNSPLIT)


def test_a_class_is_split_while_a_splitting_set_may_follow() -> None:
    automaton = compile_regex(r"https?:[^ ]*").automaton(Budget())
    state = automaton.start
    assert automaton.coarse_levels(state) == 0
    for byte in b"http":
        state = int(automaton.row(state)[byte])
    assert automaton.coarse_levels(state) == 0  # an s may come
    state = int(automaton.row(state)[ord(":")])
    assert automaton.coarse_levels(state) == ALL_LEVELS
