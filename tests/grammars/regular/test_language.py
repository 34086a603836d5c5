"""Languages, checked against Python's `re`, brute force over small alphabets, and known hostile patterns."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.language import Language, compile_regex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from tests.support.grammars.texts import patterns, short_texts
from tests.support.long_tests import sized

WORDS = [
    "".join(letters)
    for length in range(6)
    for letters in itertools.product("abc" if length < 5 else "ab", repeat=length)
]


def are_equal(one: Language, other: Language) -> bool:
    return one.includes(other) and other.includes(one)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(patterns(assertions=False), st.lists(short_texts, min_size=4, max_size=4))
def test_full_matches_agree_with_re(pattern: str, texts: list[str]) -> None:
    language = compile_regex(pattern, dialect="python")
    for text in texts:
        assert language.accepts(text) == (_compiled(pattern).fullmatch(text) is not None), text


@settings(max_examples=sized(150), deadline=None, derandomize=True)
@given(patterns(assertions=False), st.lists(short_texts, min_size=4, max_size=4))
def test_searches_agree_with_re(pattern: str, texts: list[str]) -> None:
    language = compile_regex(pattern, dialect="python", mode="search")
    for text in texts:
        assert language.accepts(text) == (_compiled(pattern).search(text) is not None), text


@settings(max_examples=sized(400), deadline=None, derandomize=True)
@given(patterns(assertions=True), st.booleans(), st.lists(short_texts, min_size=4, max_size=4))
def test_anchors_and_assertions_agree_with_re(pattern: str, is_search: bool, texts: list[str]) -> None:
    language = compile_regex(pattern, dialect="python", mode="search" if is_search else "full")
    for text in texts:
        if (
            r"\B" in pattern and not text
        ):  # \B matches the empty string in ECMA-262 and Python 3.14, not in older versions
            continue
        compiled = _compiled(pattern)
        expected = (compiled.search(text) if is_search else compiled.fullmatch(text)) is not None
        assert language.accepts(text) == expected, text


@settings(max_examples=sized(80), deadline=None, derandomize=True)
@given(patterns(assertions=True), st.booleans())
def test_samples_and_the_shortest_string_match(pattern: str, is_search: bool) -> None:
    language = compile_regex(pattern, dialect="python", mode="search" if is_search else "full")
    if language.is_empty():
        assert language.shortest() is None
        assert language.samples(random.Random(0), 1) == []
        return
    shortest = language.shortest()
    assert shortest is not None
    for text in [shortest, *language.samples(random.Random(0), 3)]:
        assert len(text) >= len(shortest)
        compiled = _compiled(pattern)
        if r"\B" in pattern and not text:
            continue
        assert (compiled.search(text) if is_search else compiled.fullmatch(text)) is not None, text


_SMALL = ["(a|b)*", "a*b", "[^b]*", "(ab)+c?", "b?a{1,3}", "(?:a|bc)*", "", "c", "(?=.*a).{2,4}", "((?!ab).)*"]


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(_SMALL, 2)))
def test_operations_agree_with_set_operations(one: str, other: str) -> None:
    first, second = compile_regex(one), compile_regex(other)
    in_first, in_second = ({word for word in WORDS if re.fullmatch(each, word)} for each in (one, other))

    def found(language: Language) -> set[str]:
        return {word for word in WORDS if language.accepts(word)}

    assert found(first.union(second)) == in_first | in_second
    assert found(first.intersect(second)) == in_first & in_second
    assert found(first.minus(second)) == in_first - in_second
    assert found(first.complement()) == set(WORDS) - in_first
    assert found(first.bounded(1, 3)) == {word for word in in_first if 1 <= len(word) <= 3}
    joined = {left + right for left in in_first for right in in_second}
    assert {word for word in found(first.concat(second)) if len(word) < 5} == {word for word in joined if len(word) < 5}
    if in_first & in_second:
        assert not first.is_disjoint(second)
    if in_second - in_first:
        assert not first.includes(second)


def test_inclusion_equivalence_and_disjointness() -> None:
    letters, digits = compile_regex("[a-z]+"), compile_regex("[0-9]*")
    assert letters.is_disjoint(digits)
    assert compile_regex("[a-z]*").includes(letters)
    assert not letters.includes(compile_regex("[a-z]*"))
    assert are_equal(compile_regex("(a|b)*"), compile_regex("(a*b*)*"))
    assert letters.intersect(digits).is_empty()
    assert are_equal(letters.union(letters.complement()), Language.any_text())
    assert Language.nothing().is_empty()
    assert Language.any_text().is_any_text


def test_finite_words_are_sorted_by_length_or_none() -> None:
    assert compile_regex("ab?|c{2}|").finite_words(10) == ["", "a", "ab", "cc"]
    assert compile_regex("[ab]{3}").finite_words(8) == sorted(
        "".join(word) for word in itertools.product("ab", repeat=3)
    )
    assert compile_regex("[ab]{3}").finite_words(7) is None
    assert compile_regex("a*").finite_words(100) is None
    assert compile_regex(".").finite_words(100) is None
    assert Language.nothing().finite_words(0) == []


def test_literals_and_ranges_match_exactly() -> None:
    words = Language.literals(["", "aé", "😀"])
    assert [text for text in ("", "a", "aé", "😀", "aéx") if words.accepts(text)] == ["", "aé", "😀"]
    assert Language.literal("é".encode()).accepts("é")
    assert Language.literal("é").accepts("é".encode())
    assert not Language.literal("é").accepts("é".encode("latin-1"))
    assert Language.code_points([(0x61, 0x63), (0xD700, 0xE100)]).accepts("\ue000")
    assert not Language.any_text().accepts("\ud800")
    for bad in (b"\xff", "\ud800"):
        with pytest.raises(GrammarError, match="UTF-8"):
            Language.literal(bad)


def test_lookaheads_are_confined_and_lookbehinds_rejected_in_concatenations() -> None:
    ahead = compile_regex("a(?=b)", mode="search")  # contains "ab"
    assert ahead.concat(Language.literal("b")).accepts("xabb")
    assert not compile_regex("a(?!b)").intersect(Language.any_text()).is_empty()
    assert compile_regex("a(?!b)").concat(Language.literal("b")).accepts("ab")  # the lookahead sees only its own part
    behind = compile_regex(r"[ a]+\bfoo")
    assert behind.concat(Language.literal("!")).accepts("a foo!")
    assert not behind.concat(Language.literal("!")).accepts("afoo!")
    with pytest.raises(GrammarError, match=r"lookbehind or \\b is allowed only"):
        Language.literal("x").concat(behind)
    with pytest.raises(GrammarError, match=r"lookbehind or \\b is allowed only"):
        behind.repeat()


def test_bounds_can_be_read_back_and_removed() -> None:
    bounded = compile_regex("[a-z]+-[0-9]+").bounded(5, 9).bounded(2, 7)
    assert (bounded.min_length, bounded.max_length) == (5, 7)
    assert bounded.unbounded().accepts("a-1")
    assert not bounded.accepts("a-1")
    assert bounded.accepts("abc-1")
    assert compile_regex("(aa)+").bounded(7, 7).is_empty()
    assert Language.any_text().bounded(3, 2).is_empty()
    far = Language.any_text().bounded(10**9, 10**12)
    assert not far.is_empty()


def test_hostile_patterns_are_fast() -> None:
    started = time.process_time()
    late = compile_regex("[ab]*a[ab]{24}")
    assert late.accepts("b" + "a" + "b" * 24)
    assert not late.accepts("a" + "b" * 25)
    assert not compile_regex("a{1000000000}").accepts("a" * 1000)
    doubled = compile_regex("(a|aa)+" * 50)
    assert [doubled.accepts("a" * count) for count in (49, 50, 100)] == [False, True, True]
    many = compile_regex("".join(f"(?=.*{letter})" for letter in "abcdefghijklmnopqrst") + ".*")
    assert many.accepts("tsrqponmlkjihgfedcba")
    assert not many.accepts("tsrqponmlkjihgfedcb")
    nested = compile_regex("(?:" * 60 + "a" + ")*" * 60)
    assert nested.accepts("aaa")
    assert time.process_time() - started < 20  # exponential behaviour would take hours


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a" * 300 + ")*" * 300, "nested too deeply"),
        ("x" * (4 << 20), "states"),
        ("x" * ((4 << 20) + 1), "too long"),
        ("(?:(?:a{2,3}){2,3}b" * 150 + ")*" * 150, "nested too deeply|states"),
    ],
)
def test_too_large_patterns_are_errors(pattern: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        compile_regex(pattern).automaton()


def test_an_unsatisfiable_pattern_has_no_automaton() -> None:
    empty = compile_regex(r"[^\s\S]")
    assert empty.is_empty()
    for make in (empty.automaton, empty.json_string_body):
        with pytest.raises(GrammarError, match="matches no string"):
            make()


def test_a_search_for_acceptance_stays_within_its_budget() -> None:
    hard = (
        compile_regex("(?:aaa)*").intersect(compile_regex("(?:a{7})*"), compile_regex("(?:a{11})*")).bounded(1, 10**9)
    )
    assert hard.shortest() == "a" * 231
    with pytest.raises(GrammarError, match="more than 50 states"):
        compile_regex("(?:a{97})*").intersect(compile_regex("(?:a{89})+")).is_empty(Budget(Limits(max_states=50)))


@settings(max_examples=sized(120), deadline=None, derandomize=True)
@given(st.lists(patterns(assertions=True), min_size=1, max_size=2), st.lists(short_texts, min_size=6, max_size=6))
def test_automata_built_together_equal_those_built_alone(sources: list[str], texts: list[str]) -> None:
    languages = [compile_regex(source, dialect="python") for source in sources]
    rest = Language.any_text().minus(Language.literals(["ab"]))
    for language in languages:
        rest = rest.minus(language)
    together = [each for each in (*languages, rest) if not each.is_empty()]
    bodies = Language.json_string_bodies(together, Budget())
    for language, body in zip(together, bodies, strict=True):
        alone = language.json_string_body()
        for text in (*texts, "ab", "a", "", "é\\u0061"):
            states = [body.start, alone.start]
            for byte in text.encode():
                states = [int(each.row(at)[byte]) for each, at in zip((body, alone), states, strict=True)]
                assert (states[0] < 0) == (states[1] < 0)
                if states[0] < 0:
                    break
            else:
                assert body.is_accepting(states[0]) == alone.is_accepting(states[1])
                if body.is_between_characters(states[0]):
                    assert body.free_length(states[0], 9) == alone.free_length(states[1], 9)


def test_a_language_with_a_lookbehind_is_built_alone() -> None:
    language = compile_regex(r"a(?<=a)b|\bc", dialect="python")
    rest = Language.any_text().minus(compile_regex("b"))
    together = [language, compile_regex("a[bc]"), rest, rest.minus(language)]
    for language, body in zip(together, Language.json_string_bodies(together, Budget()), strict=True):
        for text in ("ab", "ac", "b", "c", "", "abc"):
            state = body.start
            for byte in text.encode():
                state = int(body.row(state)[byte]) if state >= 0 else state
            assert (state >= 0 and body.is_accepting(state)) == language.accepts(text)


def test_explored_states_need_no_budget() -> None:
    language, fresh = (compile_regex("(?:ab|cd){3}e?") for _ in range(2))
    language.explore(100)
    nothing_left = Budget(Limits(max_states=0))
    assert language.accepts("abcdabe", nothing_left)
    with pytest.raises(GrammarError):
        fresh.accepts("abcdabe", nothing_left)


def test_exploration_terminates() -> None:
    language = compile_regex("[ab]*a[ab]{24}")
    language.explore(50)
    assert language.accepts("a" * 25)
    compile_regex("a(?!)").explore(5)  # empty language


def test_bounded_languages_are_cached_up_to_a_limit() -> None:
    language = compile_regex("[ab]*")
    assert language.bounded(1, 3) is language.bounded(1, 3)
    first = language.bounded(0, 2)
    for high in range(100, 200):
        assert language.bounded(0, high).accepts("a" * high)
        assert not language.bounded(0, high).accepts("a" * (high + 1))
    assert language.bounded(0, 2) is not first
    assert are_equal(language.bounded(0, 2), first)


def test_alternations_of_words_are_what_python_matches() -> None:
    rng = random.Random(12)
    for _ in range(sized(200, usual=20)):
        words = ["".join(rng.choices("ab", k=rng.randint(0, 5))) for _ in range(rng.randint(2, 30))]
        classes = [word.replace("a", "[ab]", 1) if rng.random() < 0.2 else word for word in words]
        pattern = "(?:" + "|".join(classes) + ")" + rng.choice(["", "+", "{2,3}", "b?"])
        language = compile_regex(pattern, dialect="python")
        for _ in range(40):
            text = "".join(rng.choices("ab", k=rng.randint(0, 9)))
            assert language.accepts(text, Budget()) is bool(re.fullmatch(pattern, text)), (pattern, text)


@pytest.mark.parametrize("pattern", ["a|bc|", "|ab|ab?", "(a|bc|)(d|)", "((a|b|c)|)x?"])
def test_alternations_of_words_keep_the_empty_text(pattern: str) -> None:
    language = compile_regex(pattern)
    for text in ("", "a", "bc", "ab", "d", "bcd", "b"):
        assert language.accepts(text) == (re.fullmatch(pattern, text) is not None), (pattern, text)
