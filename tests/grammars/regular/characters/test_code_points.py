"""Sets of code points, checked against Python's sets."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.characters import code_points
from rtlang_grammars.regular.characters.code_points import CodePoints
from tests.support.long_tests import sized

SMALL = 0xD7F8  # a window from here contains surrogates
pairs = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (SMALL + min(pair), SMALL + max(pair)))
ranges = st.lists(pairs, max_size=5)


def _members(points: CodePoints) -> set[int]:
    return {each for first, last in points for each in range(first, min(last, SMALL + 100) + 1) if each >= SMALL}


def _scalars(pairs: list[tuple[int, int]]) -> set[int]:
    return {each for first, last in pairs for each in range(first, last + 1) if not 0xD800 <= each <= 0xDFFF}


@settings(max_examples=sized(200), deadline=None, derandomize=True)
@given(ranges, ranges)
def test_operations_agree_with_python_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second = code_points.normalize(one), code_points.normalize(other)
    in_first, in_second = _scalars(one), _scalars(other)
    everything = _scalars([(SMALL, SMALL + 100)])
    assert _members(first) == in_first
    assert _members(code_points.union(first, second)) == in_first | in_second
    assert _members(code_points.intersection(first, second)) == in_first & in_second
    assert _members(code_points.difference(first, second)) == in_first - in_second
    assert _members(code_points.complement(first)) & everything == everything - in_first
    assert code_points.size(first) == len(in_first)
    for each in range(SMALL, SMALL + 32):
        assert code_points.contains(first, each) == (each in in_first)


@settings(max_examples=sized(200), deadline=None, derandomize=True)
@given(ranges)
def test_equal_sets_are_equal_tuples(pairs: list[tuple[int, int]]) -> None:
    points = code_points.normalize(pairs)
    singles = [(each, each) for each in sorted(_scalars(pairs), reverse=True)]
    assert code_points.normalize(singles) == points
    assert code_points.complement(code_points.complement(points)) == points


def test_surrogates_are_never_members() -> None:
    assert code_points.single(0xD800) == code_points.NONE
    assert code_points.single(0x61) == code_points.of_text("aa") == ((0x61, 0x61),)
    assert code_points.complement(code_points.NONE) == code_points.ALL
    assert code_points.size(code_points.ALL) == 0x110000 - 0x800


def test_a_few_ranges_meet_many() -> None:
    many = tuple((first, first + 3) for first in range(0, 400, 7))
    for pairs in product(range(0, 60, 4), range(0, 60, 3)):
        few = code_points.normalize([pairs, (390, 1000)])
        members = {each for first, last in few for each in range(first, last + 1) if each % 7 < 4 and each < 403}
        for found in (code_points.intersection(few, many), code_points.intersection(many, few)):
            assert found == code_points.normalize((each, each) for each in members)
