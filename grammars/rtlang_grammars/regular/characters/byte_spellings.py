"""Decoder states of the encodings of a code point: UTF-8 and the escapes of JSON strings.

A `DecoderState` is a position within the encoding of one character and the range of code points that are still possible. The states form
a tree over ranges that is independent of any language; `byte_automaton` combines it with the transitions of an automaton.
Sources: RFC 3629 section 4, RFC 8259 section 7.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from rtlang_grammars.regular.characters.code_points import FIRST_SURROGATE, LAST_SURROGATE, MAX_CODE_POINT

_FIRST_LOW_SURROGATE = 0xDC00


class DecoderPhase(IntEnum):
    """The kind of a position within a character."""

    CONTINUATION = 0  # before the last `level` continuation bytes of UTF-8
    ESCAPE = 1  # after a backslash
    HEX = 2  # before the last `level` digits after \u; the range is of 16-bit units
    SECOND_BACKSLASH = 3  # after the escape of a high surrogate
    SECOND_U = 4
    LOW_HEX = 5  # before the last `level` digits of the low surrogate


class DecoderState(NamedTuple):
    """A position within a character.

    Attributes:
        phase: the kind of the position.
        level: the number of bytes or digits still to come, for the phases that count them.
        first, last: the code points that are still possible; 16-bit units for HEX.
    """

    phase: DecoderPhase
    level: int
    first: int
    last: int


class Edge(NamedTuple):
    """The bytes `low` to `high` lead to `state`, or, if that is None, complete the characters from `first` on, in order."""

    low: int
    high: int
    state: DecoderState | None
    first: int


UTF8_LEADS: tuple[tuple[int, int, DecoderState], ...] = (
    (0xC2, 0xDF, DecoderState(DecoderPhase.CONTINUATION, 1, 0x80, 0x7FF)),
    (0xE0, 0xE0, DecoderState(DecoderPhase.CONTINUATION, 2, 0x800, 0xFFF)),
    (0xE1, 0xEC, DecoderState(DecoderPhase.CONTINUATION, 2, 0x1000, 0xCFFF)),
    (0xED, 0xED, DecoderState(DecoderPhase.CONTINUATION, 2, 0xD000, FIRST_SURROGATE - 1)),
    (0xEE, 0xEF, DecoderState(DecoderPhase.CONTINUATION, 2, 0xE000, 0xFFFF)),
    (0xF0, 0xF0, DecoderState(DecoderPhase.CONTINUATION, 3, 0x10000, 0x3FFFF)),
    (0xF1, 0xF3, DecoderState(DecoderPhase.CONTINUATION, 3, 0x40000, 0xFFFFF)),
    (0xF4, 0xF4, DecoderState(DecoderPhase.CONTINUATION, 3, 0x100000, MAX_CODE_POINT)),
)
"""Runs (low, high) of UTF-8 lead bytes of characters beyond ASCII, and the decoder state of the whole run."""

ESCAPE = DecoderState(DecoderPhase.ESCAPE, 0, 0, MAX_CODE_POINT)
_SHORT_ESCAPES = ((0x22, 0x22), (0x2F, 0x2F), (0x5C, 0x5C), (0x62, 8), (0x66, 0xC), (0x6E, 0xA), (0x72, 0xD), (0x74, 9))


def lead_state(low: int, byte: int, run: DecoderState) -> DecoderState:
    """The decoder state after one byte of a run of UTF-8 lead bytes that begins at `low`."""
    block: int = 64**run.level
    first = run.first // block * block + (byte - low) * block
    return DecoderState(run.phase, run.level, max(first, run.first), min(first + block - 1, run.last))


def code_point_ranges(state: DecoderState) -> tuple[tuple[int, int], ...]:
    """The code points that a decoder state can still complete."""
    if state.phase is not DecoderPhase.HEX:
        return ((state.first, state.last),)
    ranges = []
    if state.first < FIRST_SURROGATE:
        ranges.append((state.first, min(state.last, FIRST_SURROGATE - 1)))
    if state.last > LAST_SURROGATE:
        ranges.append((max(state.first, LAST_SURROGATE + 1), state.last))
    high_first, high_last = max(state.first, FIRST_SURROGATE), min(state.last, _FIRST_LOW_SURROGATE - 1)
    if high_first <= high_last:
        ranges.append((_first_supplementary(high_first), _first_supplementary(high_last) + 0x3FF))
    return tuple(ranges)


def shape(state: DecoderState) -> tuple[int, ...]:
    """A key that is equal for states with equal continuations when all their code points lead to one automaton state."""
    phase, level, first, last = state
    if phase is DecoderPhase.CONTINUATION:
        return (phase, level, first % 64**level, last % 64**level)
    if phase is DecoderPhase.HEX and last >= FIRST_SURROGATE and first <= LAST_SURROGATE:
        if first >= FIRST_SURROGATE and last < _FIRST_LOW_SURROGATE:
            return (phase, level, 1)
        return (phase, level, 2, first)
    return (phase, level)


@lru_cache(maxsize=4096)
def edges(state: DecoderState) -> tuple[Edge, ...]:
    """The edges of a decoder state. Cached."""
    phase, level, first, last = state
    if phase is DecoderPhase.CONTINUATION:
        return _continuations(level, first, last)
    if phase is DecoderPhase.ESCAPE:
        short = tuple(Edge(byte, byte, None, code_point) for byte, code_point in _SHORT_ESCAPES)
        return (*short, Edge(0x75, 0x75, DecoderState(DecoderPhase.HEX, 4, 0, 0xFFFF), 0))
    if phase is DecoderPhase.SECOND_BACKSLASH:
        return (Edge(0x5C, 0x5C, DecoderState(DecoderPhase.SECOND_U, 0, first, last), 0),)
    if phase is DecoderPhase.SECOND_U:
        return (Edge(0x75, 0x75, DecoderState(DecoderPhase.LOW_HEX, 4, first, last), 0),)
    if phase is DecoderPhase.LOW_HEX:
        return _low_digits(level, first, last)
    return _digits(level, first)


def _continuations(level: int, first: int, last: int) -> tuple[Edge, ...]:
    if level == 1:
        return (Edge(0x80 + first % 64, 0x80 + last % 64, None, first),)
    block = 64 ** (level - 1)
    found = []
    for number in range(first // block, last // block + 1):
        following = DecoderState(
            DecoderPhase.CONTINUATION, level - 1, max(first, number * block), min(last, number * block + block - 1)
        )
        found.append(Edge(0x80 + number % 64, 0x80 + number % 64, following, 0))
    return tuple(found)


def _digits(level: int, first: int) -> tuple[Edge, ...]:
    """Edges of the hexadecimal digits of a 16-bit unit."""
    found: list[Edge] = []
    size: int = 16 ** (level - 1)
    if level == 1 and not FIRST_SURROGATE <= first <= LAST_SURROGATE:
        return _last_digits(first)
    for digit in range(16):
        following_first = first + digit * size
        following_last = following_first + size - 1
        if following_first >= _FIRST_LOW_SURROGATE and following_last <= LAST_SURROGATE:
            continue
        if level > 1:
            following = DecoderState(DecoderPhase.HEX, level - 1, following_first, following_last)
        else:
            following = DecoderState(
                DecoderPhase.SECOND_BACKSLASH,
                0,
                _first_supplementary(following_first),
                _first_supplementary(following_first) + 0x3FF,
            )
        found += [Edge(byte, byte, following, 0) for byte in _digit_bytes(digit)]
    return tuple(found)


def _low_digits(level: int, first: int, last: int) -> tuple[Edge, ...]:
    """Edges of the hexadecimal digits of a low surrogate, DC00 to DFFF."""
    if level == 4:
        return tuple(
            Edge(byte, byte, DecoderState(DecoderPhase.LOW_HEX, 3, first, last), 0) for byte in _digit_bytes(0xD)
        )
    if level == 1:
        return _last_digits(first)
    size: int = 16 ** (level - 1)
    found: list[Edge] = []
    for number, digit in enumerate(range(12, 16) if level == 3 else range(16)):
        following = DecoderState(
            DecoderPhase.LOW_HEX, level - 1, first + number * size, first + number * size + size - 1
        )
        found += [Edge(byte, byte, following, 0) for byte in _digit_bytes(digit)]
    return tuple(found)


def _last_digits(first: int) -> tuple[Edge, ...]:
    return (
        Edge(0x30, 0x39, None, first),
        Edge(0x41, 0x46, None, first + 10),
        Edge(0x61, 0x66, None, first + 10),
    )


def _digit_bytes(digit: int) -> tuple[int, ...]:
    return (0x30 + digit,) if digit < 10 else (0x37 + digit, 0x57 + digit)


def _first_supplementary(high_surrogate: int) -> int:
    """The first code point whose surrogate pair begins with a high surrogate."""
    return 0x10000 + ((high_surrogate - FIRST_SURROGATE) << 10)
