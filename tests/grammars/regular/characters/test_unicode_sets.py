"""Character sets, checked against `re` and `unicodedata` per character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import pytest

from rtlang_grammars.regular.characters import code_points, unicode_sets
from rtlang_grammars.regular.characters.code_points import CodePoints

SAMPLE = [*range(0x3000), *range(0xA000, 0xD7FF, 7), *range(0xE000, 0x20000, 5), 0x323AF, 0xE0101, 0xF0000, 0x10FFFF]


@pytest.mark.parametrize(
    ("letter", "make"),
    [("d", unicode_sets.python_digit), ("w", unicode_sets.python_word), ("s", unicode_sets.python_space)],
)
def test_python_classes_agree_with_re(letter: str, make: Callable[[], CodePoints]) -> None:
    pattern, points = re.compile(rf"\{letter}"), make()
    for code_point in SAMPLE:
        assert code_points.contains(points, code_point) == (pattern.match(chr(code_point)) is not None), hex(code_point)


@pytest.mark.parametrize("name", ["Lu", "Nd", "Zs", "L", "P", "General_Category=Sm", "gc=Sm"])
def test_general_categories_agree_with_unicodedata(name: str) -> None:
    points = unicode_sets.unicode_property(name)
    assert points is not None
    wanted = name.rpartition("=")[2]
    for code_point in SAMPLE[:4000]:
        category = unicodedata.category(chr(code_point))
        if category != "Cn":
            assert code_points.contains(points, code_point) == category.startswith(wanted), hex(code_point)


def test_scripts_and_binary_properties_are_known() -> None:
    greek = unicode_sets.unicode_property("Script=Greek")
    assert greek is not None
    assert code_points.contains(greek, ord("α"))
    assert not code_points.contains(greek, ord("a"))
    assert unicode_sets.unicode_property("ASCII") == ((0, 0x7F),)
    assert unicode_sets.unicode_property("Any") == code_points.ALL


@pytest.mark.parametrize("name", ["", "Nope", "L}", "Script=", "Script=Nope", "a=b=c", "L&", "^L"])
def test_unknown_properties_are_none(name: str) -> None:
    assert unicode_sets.unicode_property(name) is None


@pytest.mark.parametrize("character", "aAizIsSkK1ßẞéÉσςΣµμſıİKÅåǅǆ")
def test_case_closure_agrees_with_re(character: str) -> None:
    closure = unicode_sets.case_closure(code_points.single(ord(character)))
    pattern = re.compile(re.escape(character), re.IGNORECASE)
    for code_point in [*range(0x2200), 0xA64B, 0x1C88, 0x10400]:
        matches = pattern.fullmatch(chr(code_point)) is not None
        assert code_points.contains(closure, code_point) == matches, hex(code_point)


def test_ecma_whitespace_agrees_with_the_standard() -> None:
    spaces = {each for first, last in unicode_sets.ECMA_SPACE for each in range(first, last + 1)}
    separators = {each for each in range(0x10000) if unicodedata.category(chr(each)) == "Zs"}
    assert spaces == separators | {0x9, 0xA, 0xB, 0xC, 0xD, 0xFEFF, 0x2028, 0x2029}
