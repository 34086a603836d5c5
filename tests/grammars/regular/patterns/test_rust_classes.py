"""Patterns in the dialect of Rust's `regex`: what they match is what pydantic, which has that engine, matches."""

from __future__ import annotations

import random

import pytest
from pydantic_core import SchemaError, SchemaValidator, core_schema

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.regular.patterns.escapes import Flags, PatternSource, RegexDialect
from rtlang_grammars.regular.patterns.rust_classes import read_rust_class
from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.rust_patterns import LETTERS, random_pattern

UNICODE_VERSIONS = [
    r"\d",
    r"\w",
    r"\s",
    r"\pL",
    r"\p{Greek}",
    r"\W",
    r"[^\p{L}]",
    r"(?i)\p{Lu}",
    r"\p{gc!=L}",
    "(?i)[[:lower:]]",
]
"""Sets that depend on the version of Unicode, or that case variants extend."""


def language(pattern: str) -> Language:
    return compile_regex(pattern, dialect="rust", mode="search")


def rust(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_match_what_rust_matches(seed: int) -> None:
    rng, num_read, reasons = random.Random(seed), 0, {}
    for _ in range(250):
        pattern = random_pattern(rng)
        try:
            oracle = rust(pattern)
        except SchemaError:  # not a pattern
            continue
        try:
            ours = language(pattern)
            texts = ["".join(rng.choices(LETTERS, k=rng.randrange(5))) for _ in range(12)] + ours.samples(rng, 4)
            accepted = [ours.accepts(text) for text in texts]
        except GrammarError as error:
            reasons[pattern] = error.reason
            continue
        num_read += 1
        for text, is_accepted in zip(texts, accepted, strict=True):
            matches = oracle.isinstance_python(text)
            assert matches or not is_accepted, (pattern, text)
            assert matches == is_accepted or r"\B" in pattern, (pattern, text)
    assert num_read > 180
    assert {each for each in reasons if not reasons[each].startswith("too complex")} == set()


@pytest.mark.parametrize("pattern", UNICODE_VERSIONS)
def test_no_character_is_taken_that_rust_does_not_take(pattern: str) -> None:
    """Python, the package `regex` and Rust know different versions of Unicode."""
    name = pattern.removeprefix("(?i)")
    source = PatternSource(f"{name}]", RegexDialect.RUST)
    points = read_rust_class(source, Flags(ignore_case=name != pattern))
    oracle = rust(f"{pattern[: -len(name)]}^[{name}]$")
    members = [each for first, last in points for each in range(first, last + 1)]
    assert [each for each in members if not oracle.isinstance_python(chr(each))] == []
    assert len(members) > 20


@pytest.mark.parametrize(
    ("inner", "members"),
    [
        ("a-c]", "abc"),
        ("]a]", "]a"),
        ("-a]", "-a"),
        ("a-]", "a-"),
        ("--a]", "-a"),
        ("a&b]", "a&b"),
        ("[:digit:]a]", "0123456789a"),
        ("a-e&&[c-g]]", "cde"),
        ("a-e--bd]", "ace"),
        ("a-c~~b-d]", "ad"),
        ("a-e--b&&[bd]]", "d"),
        (r"\x{61}\u{62}\-]", "ab-"),
    ],
)
def test_classes(inner: str, members: str) -> None:
    source = PatternSource(inner, RegexDialect.RUST)
    assert read_rust_class(source, Flags()) == code_points.of_text(members)
    assert source.position == len(inner)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[a", "no closing bracket"),
        ("[]", "no closing bracket"),
        ("[z-a]", "out of order"),
        (r"[a-\d]", "must be single characters"),
        (r"\Z", "unknown escape"),
        (r"\1", "not supported"),
        (r"\p{Nothing}", "unknown Unicode property"),
        ("(?<=a)", "lookaround is not supported"),
        ("(?P<a", "ends within"),
        ("*", "nothing to repeat"),
        ("a{2,1}", "out of order"),
    ],
)
def test_what_rust_refuses_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(SchemaError):
        rust(pattern)
    with pytest.raises(GrammarError, match=reason):
        language(pattern)
