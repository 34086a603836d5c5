"""The regex parser: agreement with `re`, located errors, and the differences between dialects."""

from __future__ import annotations

import itertools
import random
import re
import warnings

import pytest

from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.regular.patterns.escapes import RegexDialect
from rtlang_grammars.regular.patterns.parser import parse_pattern
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits

TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abab",
    "A",
    "a\n",
    "a\nb",
    "\n",
    "{",
    "a{1",
    "a{,2}",
    "aa",
    "x y",
    "xy",
    "#",
    "foo",
    "foo bar",
    "barfoo",
]
COMMON_PATTERNS = [
    *(
        "a{2}",
        "a{1,2}b?",
        "(?:a|)b",
        "(?P<name>a)b",
        "(a(?:b))*",
        "a|b|",
        "(?i)aB",
        "(?i:a)b",
        "(?x) x \\ y # comment",
        "(?#note)ab",
    ),
    *(
        "^a$",
        "(?m)^b$",
        "(?m)a$",
        "a$",
        r"\Aab\Z",
        "(^a|b$)",
        "a*?b",
        "a??b",
        "(?s)a.b",
        "a.b",
        "a{,2}",
        "a{1",
        "{",
        "()",
        "(a|^)b",
        "(?=a)ab",
    ),
    *(
        "(?!b).*",
        r"foo\b",
        r"\bbar",
        "(?<=a)b",
        "(?<!a)b",
        "(?<=a.)b|a",
        "((?=a)|b)*ab",
        "(?:a|^)*b",
        "(?=a)*b",
        "(?:^|b)a",
        "(?s-i:a.)b",
    ),
    *("a{,}", "a{,}b", "a{}", r"\B", r"\Ba", r"a\B.*", r"(?:\B|a)b?", r"(?=\B).*", r"(?!\B)a", r"x\B y|x \By"),
]


@pytest.mark.parametrize("pattern", COMMON_PATTERNS)
@pytest.mark.parametrize("mode", ["full", "search"])
def test_python_patterns_agree_with_re(pattern: str, mode: str) -> None:
    compiled = re.compile(pattern)
    language = compile_regex(pattern, dialect="python", mode="full" if mode == "full" else "search")
    for text in TEXTS:
        found = compiled.fullmatch(text) if mode == "full" else compiled.search(text)
        assert language.accepts(text) == (found is not None), text


def test_lower_case_z_is_not_an_anchor_in_python() -> None:
    with pytest.raises(GrammarError, match=r"unknown escape \\z; use \\Z for the end of the string") as caught:
        compile_regex(r"a\z", dialect="python")
    assert caught.value.location == "1:2"


def test_the_lark_dialect_is_the_python_dialect() -> None:
    assert compile_regex("(?i:select)(?!x)", dialect="lark").accepts("SELECT")


def test_dollar_allows_a_final_newline_only_in_python() -> None:
    assert not compile_regex("a$", mode="search").accepts("a\n")
    assert compile_regex("a$", dialect="python", mode="search").accepts("a\n")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [("{a}", ["{a}"]), ("a{,2}", ["a{,2}"]), ("a{x}", ["a{x}"]), ("x{1", ["x{1"]), ("(?<n$>b)", ["b"])],
)
def test_invalid_quantifier_braces_are_literals_in_ecma(pattern: str, texts: list[str]) -> None:
    assert compile_regex(pattern).finite_words(5) == texts


@pytest.mark.parametrize(
    ("pattern", "reason", "location"),
    [
        ("a)", "unmatched closing parenthesis", "1:2"),
        ("b(a", "no closing parenthesis", "1:2"),
        ("*a", "nothing to repeat", "1:1"),
        ("a\nb**", "nothing to repeat", "2:3"),
        ("a|+", "nothing to repeat", "1:3"),
        ("^*", "nothing to repeat", "1:2"),
        ("a{2}{3}", "nothing to repeat", "1:5"),
        ("a{3,2}", "out of order", "1:2"),
        ("a{1234567890123456}", "at most 15 digits", "1:2"),
        ("(?P<n>a)", "unknown group syntax", "1:1"),
        ("(?>a)", "atomic", "1:1"),
        ("(?<1>a)", "invalid group name", "1:1"),
        ("(?<=$)a", "not supported in a lookbehind", "1:1"),
        ("(?i)a", "unknown group syntax", "1:1"),
    ],
)
def test_syntax_errors_are_located(pattern: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        compile_regex(pattern)
    assert caught.value.location == location


@pytest.mark.parametrize(
    "pattern", ["a++", "a*+", "(?P=n)", "(?(1)a|b)", "(?>a)", "a(?i)b", "(?P<n>a)(?P=n)", r"(a)\1"]
)
def test_nonregular_constructs_are_errors_in_the_python_dialect(pattern: str) -> None:
    with pytest.raises(GrammarError, match=r"not supported|only at its start"):
        compile_regex(pattern, dialect="python")


@pytest.mark.parametrize(
    ("pattern", "reason", "location"),
    [
        ("(?<x>a)", "unknown group syntax", "1:1"),
        ("(?P<x>a)|(?P<x>b)", "duplicate group name 'x'", "1:10"),
        ("(?P<x$>a)", "invalid group name", "1:1"),
        ("a(?<=a|bb)b", "fixed length", "1:2"),
        ("(?<!a+)b", "fixed length", "1:1"),
    ],
)
def test_errors_of_re_are_errors_in_the_python_dialect_only(pattern: str, reason: str, location: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        compile_regex(pattern, dialect="python")
    assert caught.value.location == location
    with pytest.raises(re.error):
        re.compile(pattern)
    if "P" not in pattern:
        assert not compile_regex(pattern).is_empty()


def test_nesting_size_and_assertions_are_limited() -> None:
    with pytest.raises(GrammarError, match="more than 10 levels"):
        parse_pattern("(a" * 12 + ")?" * 12, RegexDialect.ECMA, Budget(Limits(max_depth=10)))
    with pytest.raises(GrammarError, match="more than 10 levels"):
        parse_pattern("(" * 50 + ")" * 50, RegexDialect.ECMA, Budget(Limits(max_depth=10)))
    with pytest.raises(GrammarError, match="more than 20 states"):
        parse_pattern("a" * 21, RegexDialect.ECMA, Budget(Limits(max_states=20)))
    with pytest.raises(GrammarError, match="at most 256 assertions"):
        parse_pattern(r"\b" * 257, RegexDialect.ECMA, Budget())
    assert parse_pattern("(" * 150 + "a" + ")" * 150, RegexDialect.ECMA, Budget()).depth == 1


_SINGLE = r"a b 1 _ A . ^ $ { } ] {1 {1, {,} a{,2} a{x} # & \b \B \d \w \s \D \W \S \A \Z \z \n \t \x61 \u0061 \141 \01 \0 \U00000061 \- \_"
_MORE = r"\\ \e \c \p{L} [ab] [^a] [a-b] []a] [^]a] [a\]b] [-a] [a-] [\w-] [\d\s] [a&&b] [[a] [b-a] [a"
_OPENINGS = "( (?: (?= (?! (?<= (?<! (?P<x> (?P<y> (?i: (?s: (?m: (?-i: (?x: (?a: (?i) (?s) (?m) (?x) (?#c) (?im-s: (?P<1> (?<x> (?R) (?u:"
_COUNTS = "* + ? {2} {1,2} {,2} {1,} {0} *? +? ?? {1,2}? ** {2}{3} {2,1} {,}"
_ATOMS, _GROUPS, _REPEATS = [*f"{_SINGLE} {_MORE}".split(), " ", "\n"], _OPENINGS.split(), _COUNTS.split()


def _random_pattern(rng: random.Random, depth: int) -> str:
    chance = rng.random()
    if depth == 0 or chance < 0.45:
        pattern = rng.choice(_ATOMS)
    elif chance < 0.65:
        pattern = rng.choice(_GROUPS) + _random_pattern(rng, depth - 1) + (")" if rng.random() < 0.97 else "")
    else:
        pattern = _random_pattern(rng, depth - 1) + "|" * (chance < 0.8) + _random_pattern(rng, depth - 1)
    return pattern + (rng.choice(_REPEATS) if rng.random() < 0.3 else "")


@pytest.mark.parametrize(
    ("seed", "count", "letters", "longest"),
    [
        (1, 700, "ab\n", 3),
        *(
            pytest.param(seed, 4000, letters, 4, marks=pytest.mark.slow)
            for seed, letters in enumerate(("ab", "a1_", "aA "))
        ),
    ],
)
def test_random_patterns_agree_with_re_or_are_errors(seed: int, count: int, letters: str, longest: int) -> None:
    rng = random.Random(seed)
    words = ["".join(each) for length in range(longest + 1) for each in itertools.product(letters, repeat=length)]
    num_compared = 0
    for _ in range(count):
        pattern = _random_pattern(rng, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            try:
                expected = re.compile(pattern)
            except (re.error, OverflowError):
                expected = None
        try:
            language = compile_regex(pattern, dialect="python")
        except GrammarError:
            continue  # invalid for re, or not regular
        assert expected is not None, f"{pattern!r} is none to re"
        num_compared += 1
        for word in words:
            assert language.accepts(word) is (expected.fullmatch(word) is not None), (pattern, word)
    assert num_compared > count // 3
