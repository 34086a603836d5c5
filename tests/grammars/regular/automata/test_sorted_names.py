"""Classification of names, checked against `re` and a list of names."""

from __future__ import annotations

import json
import random
import re

import pytest

from rtlang_grammars.regular.automata.byte_automaton import NamesAutomaton
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from tests.support.grammars.texts import spellings, walk

CASES: list[tuple[list[str], list[str]]] = [
    ([], []),
    (["a", "ab", "b\n", ""], []),
    (["name", "names", "na\u00e9"], ["^na"]),
    (["x_1"], ["^x_[0-9]+$", "^y"]),
    (["ab"], ["^[ab]{2,3}$", "c$"]),
    (["\U0001f600", "z"], ["(?<=a)z", "^(?!a)q"]),
    (["a"], ["^a$"]),
    (["q"], ["^[^\\x00]*$"]),
]
LETTERS = ["a", "b", "c", "n", "m", "e", "s", "x", "y", "_", "1", "z", "q", "\n", "é", "😀", "\u2028", "\0", "日"]


def automaton(listed: list[str], patterns: list[str]) -> NamesAutomaton:
    languages = [compile_regex(pattern, mode="search") for pattern in patterns]
    languages = [each.minus(*languages[:i]) if i == 1 else each for i, each in enumerate(languages)]
    return Language.names_body(listed, languages, Budget())


def label(listed: list[str], patterns: list[str], text: str) -> int | None:
    if text in listed:
        return None
    found = (i for i, pattern in enumerate(patterns) if re.search(pattern.replace("$", r"\Z"), text, re.DOTALL))
    return next(found, len(patterns))


@pytest.mark.parametrize(("listed", "patterns"), CASES)
def test_labels_agree_with_the_list_and_the_patterns(listed: list[str], patterns: list[str]) -> None:
    names = automaton(listed, patterns)
    rng = random.Random(3)
    texts = {"".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 5))) for _ in range(300)}
    texts |= {*listed, *(each + "a" for each in listed), *(each[:-1] for each in listed)}
    for text in sorted(texts):
        for spelling in {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], *spellings(text[:2])}:
            value = json.loads(f'"{spelling}"')
            state = walk(names, spelling.encode())
            assert names.label(state) == label(listed, patterns, value), (value, spelling)
            assert names.is_accepting(state) == (value not in listed)


@pytest.mark.parametrize(("listed", "patterns"), CASES)
def test_no_state_is_dead_and_every_label_has_a_short_completion(listed: list[str], patterns: list[str]) -> None:
    names = automaton(listed, patterns)
    rng = random.Random(5)
    for _ in range(40):
        begin = "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 3)))
        spelled = json.dumps(begin, ensure_ascii=False)[1:-1].encode()
        state = walk(names, spelled)
        ends = names.nearest_ends(state, 300)
        assert ends
        labels = []
        for end in ends:
            at = walk(names, spelled + end)
            assert at >= 0
            labels.append(names.label(at))
        assert None not in labels
        assert len(set(labels)) == len(labels)
        end = names.nearest_end(state, 300)
        assert end is not None
        assert names.is_accepting(walk(names, spelled + end))
        assert names.free_length(state, 9) is None


def test_patterns_with_the_same_sets_share_a_decoder() -> None:
    names = automaton(["a"], ["^a[0-9]", "^b[0-9]"])
    state = walk(names, b"c")
    assert names.coarse_levels(state) > 0  # every continuation is unclassified
    assert names.coarse_levels(walk(names, b"")) == 0


def test_long_lists_and_long_names_create_few_states() -> None:
    listed = [f"n{number:06}" for number in range(50_000)] + ["m" * 200_000]
    names = automaton(listed, ["^n0"])
    for text, expected in (("n000007", None), ("n00000", 0), ("n1", 1), ("m" * 500, 1), ("k", 1)):
        assert names.label(walk(names, text.encode())) == expected, text[:9]
    assert names.num_states < 1000 * 8


def test_a_listed_name_with_a_lone_surrogate_is_an_error() -> None:
    with pytest.raises(GrammarError, match="literal"):
        automaton(["\ud800"], [])
