"""Stops are found where Python's `re` finds them in the shortest beginning of the text that holds one, at a bounded cost."""

from __future__ import annotations

import random
import re

import pytest

from rtlang.contract.errors import ParameterError, RequestError
from rtlang.engine.constraints.stop_search import MAX_STATES, Stop, StopSearch, compile_stop_patterns
from tests.support.long_tests import sized


def search(text: str, strings: tuple[str, ...] = (), patterns: tuple[str, ...] = (), sizes: int = 1) -> Stop | None:
    """The stop of a text that is read in parts of `sizes` characters."""
    found = StopSearch(strings, compile_stop_patterns(patterns))
    for start in range(0, len(text), sizes):
        stop = found.push(text[start : start + sizes])
        if stop is not None:
            return stop
    return found.finish()


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    """A pattern over a, b and c without assertions."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(("a", "b", "c", "[ab]", ".", "[^c]"))
    kind = rng.randrange(4)
    if kind == 0:
        return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1)
    if kind == 1:
        return f"(?:{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    return f"(?:{random_pattern(rng, depth - 1)}){rng.choice(('+', '?', '{2}', '{1,3}', '+?'))}"


@pytest.mark.parametrize("seed", range(sized(150)))
def test_patterns_cut_where_re_finds_them_in_the_shortest_beginning(seed: int) -> None:
    rng = random.Random(seed)
    patterns = tuple({random_pattern(rng) for _ in range(rng.randint(1, 2))})
    text = "".join(rng.choice("abcd\n") for _ in range(30))
    expected = None
    for end in range(1, len(text) + 1):
        starts = [found.start() for each in patterns if (found := re.search(each, text[:end]))]
        if starts:
            expected = min(starts)
            break
    for sizes in (1, 3, 30):
        stop = search(text, patterns=patterns, sizes=sizes)
        assert (None if stop is None else stop.offset) == expected, (patterns, text)


@pytest.mark.parametrize("seed", range(sized(150)))
def test_assertions_are_certain_as_soon_as_no_continuation_can_refuse_them(seed: int) -> None:
    rng = random.Random(seed)
    parts = (r"\b", "$", r"\Z", "^", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", r"\B", "(?m:^)", "(?m:$)", "(?=ab|c)")
    pattern = "".join(rng.choice(parts) if rng.random() < 0.4 else random_pattern(rng, 1) for _ in range(3))
    text = "".join(rng.choice("ab \n") for _ in range(8))
    expected = None
    for end in range(1, len(text) + 1):
        certain = [start for start in range(end + 1) if is_certain(pattern, text[:end], start)]
        if certain:
            expected = certain[0]
            break
    else:
        at_end = re.search(pattern, text)
        expected = None if at_end is None else at_end.start()
    stop = search(text, patterns=(pattern,))
    assert (None if stop is None else stop.offset) == expected, (pattern, text)


def is_certain(pattern: str, text: str, start: int) -> bool:
    """Whether a pattern matches at `start` whatever follows the text: two more characters decide every assertion above."""
    tails = ["", *"abc \n", *(first + second for first in "abc \n" for second in "abc \n")]
    return all(re.compile(pattern).match(text + tail, start) is not None for tail in tails)


@pytest.mark.parametrize("seed", range(sized(100)))
def test_what_is_held_back_is_what_may_still_become_a_stop(seed: int) -> None:
    rng = random.Random(seed)
    strings = tuple({"".join(rng.choice("ab") for _ in range(rng.randint(1, 4))) for _ in range(2)})
    text = "".join(rng.choice("abc") for _ in range(20))
    found = StopSearch(strings, ())
    for end in range(1, len(text) + 1):
        if found.push(text[end - 1]) is not None:
            return
        open_from = min(
            (start for start in range(end) if any(each.startswith(text[start:end]) for each in strings)), default=end
        )
        assert found.open_from == open_from


@pytest.mark.parametrize("seed", range(sized(200)))
def test_where_few_places_count_the_stop_is_that_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    strings = tuple({"".join(rng.choice("ab") for _ in range(rng.randint(1, 4))) for _ in range(2)})
    patterns = tuple({random_pattern(rng, 2) for _ in range(rng.randint(0, 2))})
    text = "".join(rng.choice("abc") for _ in range(24))
    places = {place for place in range(len(text) + 1) if rng.random() < rng.choice((0.1, 0.5))}
    expected: int | None = None
    held: list[int] = []  # after each character, where a string may have begun
    for end in range(1, len(text) + 1):
        starts = [
            start
            for start in range(end + 1)
            if start in places
            and (
                any(text[start:end] == each for each in strings)
                or any(re.compile(each).match(text[:end], start) for each in patterns)
            )
        ]
        if starts:
            expected = min(starts)
            break
        begun = [
            start for start in range(end) if start in places and any(s.startswith(text[start:end]) for s in strings)
        ]
        held.append(min(begun, default=end))
    found = StopSearch(strings, compile_stop_patterns(patterns), places.__contains__)
    stop = None
    for end, character in enumerate(text, 1):
        stop = found.push(character)
        if stop is not None:
            break
        assert patterns or found.open_from == held[end - 1]
    stop = stop or found.finish()
    assert (None if stop is None else stop.offset) == expected, (strings, patterns, text, places)


def test_a_string_and_a_pattern_are_compared_by_where_they_begin() -> None:
    assert search("xabc", ("c",), ("a.c",)) == Stop("a.c", 1)
    assert search("xabc", ("abc",), ("c",)) == Stop("abc", 1)
    assert search("xabc", ("b",), ("a.c",)) == Stop("b", 2)


def test_a_pattern_that_matches_nothing_at_all_ends_the_text_at_once() -> None:
    assert search("abc", patterns=("x*",)) == Stop("x*", 0)


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", r"(?P<x>a)(?P=x)", r"(?>a+)b", r"a++b", r"(a)?(?(1)b|c)", r"(a|b)*a(a|b){14}"]
)
def test_patterns_that_need_backtracking_or_too_many_states_are_refused_by_name(pattern: str) -> None:
    with pytest.raises(ParameterError, match="stop_regex"):
        compile_stop_patterns((pattern,))


def test_all_patterns_of_a_request_share_one_budget() -> None:
    patterns = tuple(f"{letter}.{{{MAX_STATES // 8}}}x" for letter in "abcdefgh")
    compile_stop_patterns(patterns[:2])
    with pytest.raises(ParameterError, match="more than"):
        compile_stop_patterns(patterns)


@pytest.mark.parametrize("pattern", [r"(a|a|aa)+$b", r"(a+)+b", r"(?:a?){30}a{30}c", r"(.*)*(.*)*x"])
def test_a_text_cannot_make_a_search_slow(pattern: str) -> None:
    found = StopSearch((), compile_stop_patterns((pattern,)))
    assert found.push("a" * 5000) is None
    (pattern_search,) = found._patterns
    assert len(pattern_search.threads) <= 62  # the states it follows, whatever the text


def test_patterns_that_follow_too_many_places_fail_their_request() -> None:
    found = StopSearch((), compile_stop_patterns((".{800}x",)))
    with pytest.raises(RequestError, match="stop_regex"):
        found.push("abcdefgh" * 1000)


def test_a_long_string_of_one_letter_is_followed_letter_by_letter() -> None:
    found = StopSearch(("a" * 3000 + "b",), ())
    assert found.push("a" * 6000) is None
    assert found.open_from == 3000
    assert found.push("b") == Stop("a" * 3000 + "b", 3000)
