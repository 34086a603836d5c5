"""Expressions of terminals, against sets of short texts combined with Python's operations on sets."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from rtlang_grammars.context_free.notation.scanner import scan
from rtlang_grammars.context_free.notation.terminal_expressions import (
    evaluate,
    leaves_in,
    substrings_of,
    uses_extensions,
)
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from tests.support.long_tests import sized

TEXTS = ["".join(each) for count in range(5) for each in itertools.product("ab", repeat=count)]
EVERY = frozenset(TEXTS)


def language(leaf: str) -> Language:
    return Language.literal(leaf[1:-1]) if leaf[0] == '"' else compile_regex(leaf[1:-1], dialect="python")


def random_expression(rng: random.Random, depth: int) -> tuple[str, frozenset[str]]:
    """An expression, and its texts of at most four letters."""
    kind = rng.choice(
        ["text", "regexp", "not", "both", "either", "sequence", "star", "counted"] if depth else ["text", "regexp"]
    )
    if kind == "text":
        text = rng.choice(["a", "b", "ab", "ba"])
        return f'"{text}"', frozenset([text])
    if kind == "regexp":
        pattern = rng.choice(["[ab]", "a*", "a+b?", "(?:ab|b)*", "b{1,2}"])
        return f"/{pattern}/", frozenset(each for each in TEXTS if re.fullmatch(pattern, each))
    written, texts = random_expression(rng, depth - 1)
    if kind == "not":
        return f"~({written})", EVERY - texts
    if kind in ("star", "counted"):
        low, high = (0, 4) if kind == "star" else rng.choice([(0, 1), (1, 2), (2, 2)])
        found = texts_of = frozenset([""])
        powers = [texts_of]
        for _ in range(high):
            texts_of = frozenset(one + other for one in texts_of for other in texts if len(one + other) < 5)
            powers.append(texts_of)
        found = frozenset().union(*powers[low:])
        sign = "*" if kind == "star" else rng.choice([f"{{{low},{high}}}", f"~{low}..{high}"])
        return f"({written}){sign}", found
    other_written, other = random_expression(rng, depth - 1)
    if kind == "both":
        return f"(({written}) & ({other_written}))", texts & other
    if kind == "either":
        return f"(({written}) | ({other_written}))", texts | other
    return f"({written}) ({other_written})", frozenset(a + b for a in texts for b in other if len(a + b) < 5)


def test_random_expressions_have_the_texts_of_their_sets() -> None:
    for seed in range(sized(400, usual=60)):
        written, texts = random_expression(random.Random(seed), 3)
        found = evaluate(scan(written), language, Budget())
        assert {each for each in TEXTS if found.accepts(each)} == texts, (seed, written)


def test_complement_binds_more_than_repeats_and_both_more_than_either() -> None:
    found = evaluate(scan('~"a"+'), language, Budget())  # a repeat of texts that are not "a"
    assert found.accepts("b")
    assert not found.accepts("a")
    found = evaluate(scan("/[ab]+/ | /[cd]+/ & /[def]+/"), language, Budget())
    assert [each for each in ("ab", "dd", "c", "e") if found.accepts(each)] == ["ab", "dd"]
    assert not evaluate(scan('/a/ /b/ & "b"'), language, Budget()).accepts("b")


@pytest.mark.parametrize("chunks", [["a"], ["ab", "c", "ab", "d"], ["a", "a", "b", "a", "a"], ["é", "ab", "", "é"], []])
def test_runs_of_chunks_are_the_substrings(chunks: list[str]) -> None:
    import json

    found = substrings_of(json.dumps({"substring_chunks": chunks}))
    runs = {"".join(chunks[i:j]) for i in range(len(chunks) + 1) for j in range(i, len(chunks) + 1)}
    letters = sorted({*"".join(chunks), "x"})
    texts = {"".join(each) for count in range(5) for each in itertools.product(letters, repeat=count)} | runs
    assert {each for each in texts if found.accepts(each)} == runs


def test_words_and_characters_are_chunks() -> None:
    words = substrings_of('{"substring_words": "foo bar. baz"}')
    assert [each for each in ("bar. ", ". baz", "oo", "foo b", "") if words.accepts(each)] == ["bar. ", ". baz", ""]
    characters = substrings_of('{"substring_chars": "뛰어넘었다"}')
    assert [each for each in ("어넘", "뛰다", "다") if characters.accepts(each)] == ["어넘", "다"]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("a & b", "a: not allowed in a terminal"),
        ('"a" %json {}', "%json: not allowed in a terminal"),
        ('("a"', "it is not closed"),
        ('"a" )', "not expected in a terminal"),
        ('"a" & ~', "at the end of the definition"),
        ('"a"{3,2}', "bounds in ascending order"),
        ('"a"{-1,}', "bounds in ascending order"),
        ('"a"~5..2', "bounds in ascending order"),
        ('%regex {"foobar": true}', "'foobar': expected one of substring_chars"),
        ("%regex {}", "expected one of"),
        ('%regex {"substring_words": true}', "substring_words: expected a string"),
    ],
)
def test_errors_say_what_is_allowed(written: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        evaluate(scan(written), language, Budget())


def test_leaves_and_extensions_are_found() -> None:
    assert leaves_in(scan('A & ~("a".."z" | /b/)~2 [""]')) == ["A", '"a".."z"', "/b/"]
    none = frozenset[str]()
    assert not uses_extensions(scan('"a"~2 B'), none)
    assert uses_extensions(scan('"a"~2 B'), frozenset(["B"]))
    assert uses_extensions(scan("~/a/"), none)
