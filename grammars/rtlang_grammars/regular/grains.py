"""Grains: coarse partitions of the characters, fixed once for all, that most patterns do not look into.

What a pattern tells apart is its own partition; where none of what may still follow tells characters of one grain apart, texts that are
the same in grains are judged the same, and a vocabulary needs to be looked at once for each such text.
"""

from __future__ import annotations

from typing import NamedTuple

from rtlang_grammars.regular.code_points import MAX_CODE_POINT, CodePoints


class Grain(NamedTuple):
    """Characters that stand for each other.

    Attributes:
        ranges: first and last code points.
        example: one of them, of the fewest bytes.
    """

    ranges: CodePoints
    example: int


def _of(*bounds: str) -> Grain:
    """Characters between the first and the second of each pair."""
    return Grain(tuple((ord(pair[0]), ord(pair[1])) for pair in bounds), ord(bounds[0][0]))


_SPACES: CodePoints = (
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_BREAKS: CodePoints = ((0x85, 0x85), (0x2028, 0x2029))
"""Those that patterns often leave out stand for themselves."""


def _beyond() -> CodePoints:
    """All beyond ASCII but spaces, line breaks and surrogates."""
    found, first = [], 0x80
    for low, high in sorted((*_SPACES, *_BREAKS, (0xD800, 0xDFFF))):
        if first < low:
            found.append((first, low - 1))
        first = high + 1
    return (*found, (first, MAX_CODE_POINT))


_BEYOND_ASCII = (Grain(_SPACES, 0xA0), Grain(_beyond(), 0xE9))
LEVELS: tuple[tuple[Grain, ...], ...] = (
    (_of("az"), _of("AZ"), _of("09"), *_BEYOND_ASCII),
    (_of("af"), _of("gz"), _of("AF"), _of("GZ"), _of("09"), *_BEYOND_ASCII),
    (_of("af"), _of("gh", "jo", "qu", "wz"), _of("AF"), _of("GH", "JO", "QS", "UU", "WY"), *_BEYOND_ASCII),
)
"""From coarse to fine, the second with the letters of hexadecimal numbers apart, the third, for addresses and times, with all digits and
the letters of IPv6, T and Z. Characters in no grain stand for themselves. No line break beyond ASCII is in one."""

ALL_LEVELS = (1 << len(LEVELS)) - 1
"""Bit i stands for level i."""
