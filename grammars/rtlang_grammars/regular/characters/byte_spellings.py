r"""How code points are spelt in bytes: UTF-8, and the escapes of JSON strings.

A `Place` is a point within the spelling of one character: so many bytes are written, and a range of code points is still possible. The
places of a spelling form a tree over ranges, which says nothing of a language; `byte_automaton` walks it with a state's moves in hand.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from rtlang_grammars.regular.characters.code_points import FIRST_SURROGATE, LAST_SURROGATE, MAX_CODE_POINT

_FIRST_LOW_SURROGATE = 0xDC00


class Spelling(IntEnum):
    """Where within a character a place is."""

    CONTINUATION = 0  # `level` continuation bytes of UTF-8 are missing
    ESCAPE = 1  # after a backslash
    HEX = 2  # after \u; `level` digits are missing, the range is one of 16-bit units
    SECOND_BACKSLASH = 3  # after the escape of a high surrogate
    SECOND_U = 4
    LOW_HEX = 5  # `level` digits of the low surrogate's escape are missing


class Place(NamedTuple):
    """A point within a character.

    Attributes:
        spelling: the kind of place.
        level: bytes still missing, where that is counted.
        first, last: the code points that are still possible; for HEX the 16-bit units.
    """

    spelling: Spelling
    level: int
    first: int
    last: int


class Branch(NamedTuple):
    """Bytes `low` to `high` lead to `place`; where it is None they end the character, spelling `first` and its successors in order."""

    low: int
    high: int
    place: Place | None
    first: int


UTF8_LEADS: tuple[tuple[int, int, Place], ...] = (
    (0xC2, 0xDF, Place(Spelling.CONTINUATION, 1, 0x80, 0x7FF)),
    (0xE0, 0xE0, Place(Spelling.CONTINUATION, 2, 0x800, 0xFFF)),
    (0xE1, 0xEC, Place(Spelling.CONTINUATION, 2, 0x1000, 0xCFFF)),
    (0xED, 0xED, Place(Spelling.CONTINUATION, 2, 0xD000, FIRST_SURROGATE - 1)),
    (0xEE, 0xEF, Place(Spelling.CONTINUATION, 2, 0xE000, 0xFFFF)),
    (0xF0, 0xF0, Place(Spelling.CONTINUATION, 3, 0x10000, 0x3FFFF)),
    (0xF1, 0xF3, Place(Spelling.CONTINUATION, 3, 0x40000, 0xFFFFF)),
    (0xF4, 0xF4, Place(Spelling.CONTINUATION, 3, 0x100000, MAX_CODE_POINT)),
)
"""First bytes of characters beyond ASCII, in runs, with the code points of the whole run."""

ESCAPE = Place(Spelling.ESCAPE, 0, 0, MAX_CODE_POINT)
_SHORT_ESCAPES = ((0x22, 0x22), (0x2F, 0x2F), (0x5C, 0x5C), (0x62, 8), (0x66, 0xC), (0x6E, 0xA), (0x72, 0xD), (0x74, 9))


def lead_place(low: int, byte: int, run: Place) -> Place:
    """The place after one byte of a run of UTF-8 lead bytes that begins at `low`."""
    block: int = 64**run.level
    first = run.first // block * block + (byte - low) * block
    return Place(run.spelling, run.level, max(first, run.first), min(first + block - 1, run.last))


def code_point_ranges(place: Place) -> tuple[tuple[int, int], ...]:
    """The code points that are still possible at a place."""
    if place.spelling is not Spelling.HEX:
        return ((place.first, place.last),)
    ranges = []
    if place.first < FIRST_SURROGATE:
        ranges.append((place.first, min(place.last, FIRST_SURROGATE - 1)))
    if place.last > LAST_SURROGATE:
        ranges.append((max(place.first, LAST_SURROGATE + 1), place.last))
    high_first, high_last = max(place.first, FIRST_SURROGATE), min(place.last, _FIRST_LOW_SURROGATE - 1)
    if high_first <= high_last:
        ranges.append((_beyond(high_first), _beyond(high_last) + 0x3FF))
    return tuple(ranges)


def shape(place: Place) -> tuple[int, ...]:
    """Equal for places with equal bytes below them, where all their code points lead to one state."""
    spelling, level, first, last = place
    if spelling is Spelling.CONTINUATION:
        return (spelling, level, first % 64**level, last % 64**level)
    if spelling is Spelling.HEX and last >= FIRST_SURROGATE and first <= LAST_SURROGATE:
        if first >= FIRST_SURROGATE and last < _FIRST_LOW_SURROGATE:
            return (spelling, level, 1)
        return (spelling, level, 2, first)
    return (spelling, level)


@lru_cache(maxsize=4096)
def branches(place: Place) -> tuple[Branch, ...]:
    """What the next byte may be at a place."""
    spelling, level, first, last = place
    if spelling is Spelling.CONTINUATION:
        return _continuations(level, first, last)
    if spelling is Spelling.ESCAPE:
        short = tuple(Branch(byte, byte, None, code_point) for byte, code_point in _SHORT_ESCAPES)
        return (*short, Branch(0x75, 0x75, Place(Spelling.HEX, 4, 0, 0xFFFF), 0))
    if spelling is Spelling.SECOND_BACKSLASH:
        return (Branch(0x5C, 0x5C, Place(Spelling.SECOND_U, 0, first, last), 0),)
    if spelling is Spelling.SECOND_U:
        return (Branch(0x75, 0x75, Place(Spelling.LOW_HEX, 4, first, last), 0),)
    if spelling is Spelling.LOW_HEX:
        return _low_digits(level, first, last)
    return _digits(level, first)


def _continuations(level: int, first: int, last: int) -> tuple[Branch, ...]:
    if level == 1:
        return (Branch(0x80 + first % 64, 0x80 + last % 64, None, first),)
    block = 64 ** (level - 1)
    found = []
    for number in range(first // block, last // block + 1):
        below = Place(
            Spelling.CONTINUATION, level - 1, max(first, number * block), min(last, number * block + block - 1)
        )
        found.append(Branch(0x80 + number % 64, 0x80 + number % 64, below, 0))
    return tuple(found)


def _digits(level: int, first: int) -> tuple[Branch, ...]:
    """Hexadecimal digits of a 16-bit unit."""
    found: list[Branch] = []
    size: int = 16 ** (level - 1)
    if level == 1 and not FIRST_SURROGATE <= first <= LAST_SURROGATE:
        return _last_digits(first)
    for digit in range(16):
        below_first = first + digit * size
        below_last = below_first + size - 1
        if below_first >= _FIRST_LOW_SURROGATE and below_last <= LAST_SURROGATE:
            continue
        if level > 1:
            below = Place(Spelling.HEX, level - 1, below_first, below_last)
        else:
            below = Place(Spelling.SECOND_BACKSLASH, 0, _beyond(below_first), _beyond(below_first) + 0x3FF)
        found += [Branch(byte, byte, below, 0) for byte in _digit_bytes(digit)]
    return tuple(found)


def _low_digits(level: int, first: int, last: int) -> tuple[Branch, ...]:
    """Hexadecimal digits of the low surrogate, which are those from DC00 to DFFF."""
    if level == 4:
        return tuple(Branch(byte, byte, Place(Spelling.LOW_HEX, 3, first, last), 0) for byte in _digit_bytes(0xD))
    if level == 1:
        return _last_digits(first)
    size: int = 16 ** (level - 1)
    found: list[Branch] = []
    for number, digit in enumerate(range(12, 16) if level == 3 else range(16)):
        below = Place(Spelling.LOW_HEX, level - 1, first + number * size, first + number * size + size - 1)
        found += [Branch(byte, byte, below, 0) for byte in _digit_bytes(digit)]
    return tuple(found)


def _last_digits(first: int) -> tuple[Branch, ...]:
    return (
        Branch(0x30, 0x39, None, first),
        Branch(0x41, 0x46, None, first + 10),
        Branch(0x61, 0x66, None, first + 10),
    )


def _digit_bytes(digit: int) -> tuple[int, ...]:
    return (0x30 + digit,) if digit < 10 else (0x37 + digit, 0x57 + digit)


def _beyond(high_surrogate: int) -> int:
    """The first code point whose pair begins with a high surrogate."""
    return 0x10000 + ((high_surrogate - FIRST_SURROGATE) << 10)
