"""Samples of patterns against `re`, and what they are good for."""

from __future__ import annotations

import json
import re

import pytest

from rtlang_grammars.api.backends import create_backend
from rtlang_grammars.completion.samples import MAX_SAMPLE_CHARS, MAX_SAMPLES, sample, samples
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from tests.support.vocabularies import small_vocabulary

PATTERNS = [
    r"\d+\.\d+\.\d+",
    r"\.png$",
    "^[a-z]+(?:-+[a-z]+)*-v\\d+$",
    r"(foo|ba|longer)\s?x{2,5}",
    r"[^a]\S\W[^\d\w]",
    r"(?P<year>[0-9]{4})-[01]?[0-9]",
    "é.日",
    r"^#([0-9A-F]{3}){1,2}$",
    "a*?b+?",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_sample_matches_its_pattern(pattern: str) -> None:
    text = sample(pattern)
    assert text
    assert re.search(pattern, text) is not None


@pytest.mark.parametrize(
    "pattern", ["(", "(a)\\1", "(?=b)a", "a{5000}", "((a{90}){90}){90}", "[^\\s\\S]", "x" * 5000, "(" * 3000]
)
def test_a_pattern_without_an_easy_sample_has_none(pattern: str) -> None:
    text = sample(pattern)
    assert text is None or re.search(pattern, text) is not None
    assert text is None or len(text) <= MAX_SAMPLE_CHARS


@pytest.mark.parametrize("pattern", ["(a|aa)+" * 50, "(?:.*a){40}", "(a*)*" * 20 + "b"])
def test_a_pattern_that_takes_a_backtracking_matcher_for_ever_has_a_sample_at_once(pattern: str) -> None:
    assert sample(pattern) in ("a" * 50, "a" * 40, "b")


def test_samples_are_taken_from_every_kind_of_constraint() -> None:
    schema = {"properties": {"a": {"pattern": '"[0-9]"'}}, "patternProperties": {"^x-": {"pattern": "b{2}"}}}
    assert samples(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))) == (b"x-", b'\\"0\\"', b"bb")
    assert samples(Constraint(ConstraintKind.REGEX, "a+b")) == (b"ab",)
    assert samples(Constraint(ConstraintKind.LARK, "start: A\nA: /[x-z]{2}/")) == (b"xx",)
    assert samples(Constraint(ConstraintKind.CHOICE, '["a"]')) == ()
    many = {"anyOf": [{"pattern": f"a{{{i}}}"} for i in range(1, 90)]}
    assert len(samples(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(many)))) == MAX_SAMPLES


@pytest.mark.parametrize("pattern", [r"\d+\.\d+\.\d+", r"\.png$", "^[a-z]+(?:-+[a-z]+)*-v[0-9]+$", "[A-Z]{3}-[0-9]{5}"])
def test_with_samples_patterns_inside_strings_are_completed(pattern: str) -> None:
    vocabulary = small_vocabulary()
    search = CompletionSearch(vocabulary)
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": "string", "pattern": pattern}))
    path = search.find(create_backend("llguidance", vocabulary, search).compile(constraint).matcher(), 60)
    assert path is not None
    assert re.search(pattern, json.loads(path.data)) is not None
