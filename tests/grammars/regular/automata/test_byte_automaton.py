"""Byte automata, checked against Python's JSON parser and UTF-8 decoder, and for dead states."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.automata.byte_automaton import Automaton
from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.texts import accepts, completion, patterns, reachable, spellings, walk
from tests.support.long_tests import sized

BODY_PIECES = [
    '"',
    "\\",
    "u",
    "d83d",
    "\\ude00",
    "\\u0041",
    "\\u00e9",
    "\\uD83D\\uDE00",
    "\\n",
    "\\/",
    "a",
    "é",
    "😀",
    "\n",
    "/",
    "\\x",
    "\\uDEAD",
]
PATTERNS = [
    r"[aé]+",
    r"\p{L}*",
    r"[^\n]*",
    r"😀|A\n",
    r"[\u{10000}-\u{10ffff}]",
    r"[\ud000-\ue100]",
    r".{1,3}",
    r'["\\/]*',
]


def _value(body: str) -> str | None:
    """The value of a JSON string with this body; None if it is invalid or has a lone surrogate."""
    try:
        value = json.loads(f'"{body}"')
        value.encode()
    except (ValueError, UnicodeError):
        return None
    assert isinstance(value, str)
    return value


@settings(max_examples=sized(300), deadline=None, derandomize=True)
@given(st.sampled_from(PATTERNS), st.lists(st.sampled_from(BODY_PIECES), max_size=4))
def test_a_json_string_body_is_accepted_if_its_value_is(pattern: str, pieces: list[str]) -> None:
    language = compile_regex(pattern)
    body = "".join(pieces)
    value = _value(body)
    assert accepts(language.json_string_body(), body.encode()) == (value is not None and language.accepts(value))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_escaped_form_of_a_string_is_accepted(pattern: str) -> None:
    language = compile_regex(pattern)
    plain, body = language.automaton(), language.json_string_body()
    for text in language.samples(random.Random(7), 20):
        assert accepts(plain, text.encode())
        for spelling in spellings(text):
            assert accepts(body, spelling.encode()), spelling


@pytest.mark.parametrize("pattern", PATTERNS)
def test_raw_bytes_are_exactly_the_utf8_of_the_language(pattern: str) -> None:
    """Tries all sequences of up to four of the bytes that matter in UTF-8."""
    language = compile_regex(pattern)
    automaton = language.automaton()
    interesting = [0x41, 0x61, 0x80, 0x9F, 0xA0, 0xBF, 0xC1, 0xC3, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF4, 0xF5]
    for length in range(1, 4):
        for data in itertools.product(interesting, repeat=length):
            assert accepts(automaton, bytes(data)) == language.accepts(bytes(data)), bytes(data)


@settings(max_examples=sized(60), deadline=None, derandomize=True)
@given(patterns(assertions=True), st.booleans())
def test_no_state_is_dead(pattern: str, is_json: bool) -> None:
    language = compile_regex(pattern, dialect="python", mode="search")
    if language.is_empty():
        return
    automaton = language.json_string_body() if is_json else language.automaton()
    for state in reachable(automaton, 60):
        assert completion(automaton, state) is not None


@pytest.mark.parametrize(
    ("one", "other"), [("a*b*", "(ab)*"), ("[ab]{3,7}", ".*bb.*"), (".*", "(?!.*x).*"), ("(aaa)*", "(aa)+")]
)
def test_intersections_and_complements_have_no_dead_states(one: str, other: str) -> None:
    first, second = compile_regex(one), compile_regex(other)
    for language in (first.intersect(second), first.minus(second).bounded(1, 5), second.minus(first)):
        if not language.is_empty():
            automaton = language.automaton()
            for state in reachable(automaton, 100):
                assert completion(automaton, state) is not None


@pytest.mark.parametrize(
    ("text", "is_between"), [("", True), ("a", True), ("\\", False), ("\\u00", False), ("\\u0041", True)]
)
def test_states_know_whether_they_are_at_a_character_boundary(text: str, is_between: bool) -> None:
    automaton = Language.any_text().json_string_body()
    state = walk(automaton, text.encode())
    assert state is not None
    assert automaton.is_between_characters(state) is is_between
    assert automaton.is_accepting(state) is is_between


def test_control_characters_and_quotes_must_be_escaped() -> None:
    body = compile_regex(r"\n").json_string_body()
    row = body.row(body.start)
    assert np.flatnonzero(row >= 0).tolist() == [ord("\\")]
    assert accepts(body, b"\\n")
    assert accepts(body, b"\\u000A")


def test_equal_decoder_states_are_merged() -> None:
    """The language of all strings needs one state at character boundaries, and few within characters."""
    plain, body = Language.any_text().automaton(), Language.any_text().json_string_body()
    assert len(reachable(plain, 1000)) == 1 + 7
    assert len(reachable(body, 1000)) < 40
    assert plain.num_states == 8


def test_rows_are_not_shared_between_calls() -> None:
    automaton = compile_regex("ab*").automaton()
    automaton.row(automaton.start)[:] = 5
    assert np.flatnonzero(automaton.row(automaton.start) >= 0).tolist() == [ord("a")]
    assert automaton.row(automaton.start).dtype == np.int32


def test_exceeding_the_state_limit_is_an_error() -> None:
    automaton = compile_regex("[ab]*a[ab]{24}").automaton(Budget(Limits(max_states=100)))
    rng = random.Random(0)
    state = automaton.start
    with pytest.raises(GrammarError, match="100 states"):
        _random_walk(automaton, state, rng)


def _random_walk(automaton: Automaton, state: int, rng: random.Random) -> None:
    for _ in range(10_000):
        state = int(automaton.row(state)[ord(rng.choice("ab"))])
