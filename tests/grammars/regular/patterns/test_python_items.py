"""Characters of items against Python's `re`."""

from __future__ import annotations

import re
from re import _parser as sre_parser  # type: ignore[attr-defined]

from rtlang_grammars.regular.characters.code_points import CodePoints
from rtlang_grammars.regular.patterns.python_items import characters_of, last_characters, one_character

CHARACTERS = [chr(point) for point in (*range(0x250), 0x3C3, 0x661, 0x1E9E, 0x2003, 0x212A, 0x65E5, 0xFB05, 0x1F600)]
ONE_CHARACTER = [
    "a",
    "[^a]",
    ".",
    "(?s:.)",
    r"\w",
    r"\W",
    r"\d",
    r"\s",
    r"[^\W\d]",
    r"(?a:\w)",
    "(?i:k)",
    "(?ai:k)",
    "(?i:[^ß-ü])",
    "(?:a|[x-z])",
]
ENDS = {
    "ab*": "ab",
    "a(b|cd)": "bd",
    "a(?:b|c)?": "abc",
    "(?i:a)x{2}": "x",
    "[a-c]+?": "abc",
    "a*": None,
    "(a|)": None,
    r"a(?=b)": None,
}


def holds(points: CodePoints, char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in points)


def test_an_item_reads_the_characters_that_its_pattern_matches() -> None:
    for pattern in ONE_CHARACTER:
        tree = sre_parser.parse(pattern)
        found = one_character(tree, tree.state.flags)
        assert found is not None, pattern
        expected = [char for char in CHARACTERS if re.fullmatch(pattern, char)]
        assert [char for char in CHARACTERS if holds(found, char)] == expected, pattern
    for pattern in ("ab", "a*", "(?:ab|c)"):
        assert one_character(sre_parser.parse(pattern), 0) is None, pattern
    ((operation, argument),) = sre_parser.parse("a*")
    assert characters_of(operation, argument, 0) is None


def test_items_end_with_the_last_characters_of_their_texts() -> None:
    for pattern, chars in ENDS.items():
        found = last_characters(list(sre_parser.parse(pattern)), 0)
        assert (None if found is None else "".join(char for char in CHARACTERS if holds(found, char))) == chars, pattern
