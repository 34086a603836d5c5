"""The states with which every grammar begins: JSON strings, numbers, literals and blanks.

Built once and copied into the tables of each grammar, so that these states have the same numbers everywhere, and the tokens of a vocabulary
that fit inside a JSON string are computed once for all grammars.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.automaton.layout import (
    CALL_NEXT,
    COUNT,
    ENDS,
    NONE,
    OPEN,
    ROW,
    SLICE,
    SPELL,
    STATE_WORDS,
)
from rtlang_grammars.machine.automaton.tables import NO_BYTE, Tables
from rtlang_grammars.spec.constraint import MAX_INDENT, JsonStyle, Numbers, Whitespace
from rtlang_grammars.spec.limits import Budget

QUOTE, BACKSLASH = 0x22, 0x5C
BLANKS = b" \t\n\r"

MAX_DIGITS = 64
"""Maximum number of digits of a number, in addition to those that every number has and those that its bounds need."""
MAX_BOUNDED_DIGITS = 20
"""The same for numbers with a lower and an upper bound: as many digits as a double needs, and three more."""
MAX_ZEROS = 3
"""Maximum number of zeros as the fraction of an integer."""

STRING_SLICE, COUNTED_SLICE, EMBEDDED_SLICE, TWIN_SLICE, TEXT_SLICE, BEFORE_TEXT_SLICE = range(1, 7)
"""SLICE of a state, by the kind of string that it is inside:

- STRING_SLICE: a free JSON string, or a name that may be undeclared;
- COUNTED_SLICE: a string whose code points are counted; PARAM is the minimum, WIDTH the maximum;
- EMBEDDED_SLICE: a string with a pattern;
- TWIN_SLICE: a string with a pattern whose code points are also counted; PARAM is the same state without the count, WIDTH the count up to
  which every text can still end in time;
- TEXT_SLICE: raw text, between characters; PARAM is the index of its facts in `Tables.texts`;
- BEFORE_TEXT_SLICE: not in a string, but raw text may begin here; PARAM as for TEXT_SLICE.
"""

_PLAIN = [b for b in range(0x20, 0x80) if b not in (QUOTE, BACKSLASH)]
_HEX = b"0123456789abcdefABCDEF"
_DEL = 0x7F


def string_body() -> NDArray[np.int32]:
    """The inside of a JSON string as an automaton, int32 [states, 256]. State 0 is between characters; the quote leads nowhere."""
    table = np.full((20, 256), NONE, dtype=np.int32)
    inner, c1, c2, e0, ed, c3, f0, f4, escape, u, h3, h2, h1, d1, s2, s1, slash, su, sd, sx = range(20)

    def put(state: int, chars: bytes | range, target: int) -> None:
        table[state, list(chars)] = target

    put(inner, bytes(_PLAIN), inner)
    put(inner, range(0xC2, 0xE0), c1)
    put(inner, range(0xE1, 0xF0), c2)
    put(inner, b"\xe0", e0)
    put(inner, b"\xed", ed)
    put(inner, b"\xf0", f0)
    put(inner, range(0xF1, 0xF4), c3)
    put(inner, b"\xf4", f4)
    put(c1, range(0x80, 0xC0), inner)
    put(c2, range(0x80, 0xC0), c1)
    put(e0, range(0xA0, 0xC0), c1)
    put(ed, range(0x80, 0xA0), c1)
    put(c3, range(0x80, 0xC0), c2)
    put(f0, range(0x90, 0xC0), c2)
    put(f4, range(0x80, 0x90), c2)
    put(inner, b"\\", escape)
    put(escape, b'"\\/bfnrt', inner)
    put(escape, b"u", u)
    put(u, _HEX, h3)
    put(u, b"dD", d1)
    put(h3, _HEX, h2)
    put(h2, _HEX, h1)
    put(h1, _HEX, inner)
    put(d1, b"01234567", h2)
    put(d1, b"89abAB", s2)
    put(s2, _HEX, s1)
    put(s1, _HEX, slash)
    put(slash, b"\\", su)
    put(su, b"u", sd)
    put(sd, b"dD", sx)
    put(sx, b"cdefCDEF", h2)
    return table


@functools.cache
def plain_body() -> NDArray[np.int32]:
    """The inside of a JSON string, in the form of `string_body`, but without escapes, U+2028 and U+2029, which patterns often exclude."""
    body = string_body()[:8]
    inner, c1 = 0, 1
    count = len(body)
    table = np.full((count + 2, 256), NONE, dtype=np.int32)
    table[:count] = body
    table[inner, [BACKSLASH, 0xE2]] = NONE, count
    table[count, 0x80:0xC0] = c1
    table[count, 0x80] = count + 1
    table[count + 1, 0x80:0xC0] = inner
    table[count + 1, 0xA8:0xAA] = NONE
    return table


@dataclass(frozen=True, slots=True, eq=False)
class JsonBaseStates:
    """The shared states.

    Attributes:
        tables: copied by others; do not modify them.
        end: the end of a frame.
        blanks: start of the frame that reads JSON blanks.
        blank_row: a row with only calls of `blanks`; an empty row in styles without free blanks.
        gap_row: the same for the place after a comma or a colon, where the style of one line allows a blank, too.
        string: any JSON string; string_inner: after its quote.
        number, integer: any JSON number, and any integer, in the spellings of the style.
        words: null, true, false.
        escape: start of the frame that reads an escape in a name that may be a declared one; see `_add_escape`.
        body: `string_body`.
    """

    tables: Tables
    end: int
    blanks: int
    blank_row: int
    gap_row: int
    string: int
    string_inner: int
    number: int
    integer: int
    words: dict[str, int]
    escape: int
    body: NDArray[np.int32]


def add_body(
    tables: Tables,
    body: NDArray[np.int32],
    edit: Callable[[NDArray[np.int32], int], None],
    *,
    slice_id: int = 0,
    block: int = 0,
) -> tuple[int, int]:
    """Copy an automaton into the tables; returns its first state and first row (one row for each state).

    Args:
        edit: changes the new rows before they are used; called with them and the first state.
        slice_id: SLICE of the first state.
    """
    count = len(body)
    row, first = tables.add_rows(count), tables.num_states
    rows = tables.rows[row : row + count]
    np.add(body, first, out=rows)
    np.copyto(rows, NONE, where=body < 0)
    edit(rows, first)
    states = np.empty((count, STATE_WORDS), dtype=np.int32)
    states[:] = (row, NO_BYTE, NONE, -1, OPEN, block, 0, 0)
    states[:, ROW] += np.arange(count, dtype=np.int32)
    states[0, SLICE] = slice_id
    tables.add_states(states)
    return first, row


def json_base_states(style: JsonStyle | None = None) -> JsonBaseStates:
    """The shared states of a style, by its blanks and its numbers; built once per process."""
    style = style or JsonStyle()
    return _json_base_states(style.blanks, style.numbers is Numbers.PLAIN)


@functools.cache
def _json_base_states(whitespace: Whitespace, is_plain: bool) -> JsonBaseStates:
    tables = Tables(Budget())
    end = tables.add_state(acc=ENDS)
    blanks = _add_blanks(tables, end)
    blank_row, gap_row = tables.add_row(), tables.add_row()
    call_blanks, call_blank = (
        tables.action(CALL_NEXT, frame, 0) for frame in (blanks, tables.add_state(byte=ord(" "), target=end))
    )
    if whitespace is Whitespace.FREE:
        tables.rows[[[blank_row], [gap_row]], list(BLANKS)] = call_blanks
    elif whitespace is Whitespace.LINE:
        tables.rows[gap_row, ord(" ")] = call_blank

    body = string_body()

    def close(rows: NDArray[np.int32], _: int) -> None:
        rows[0, QUOTE] = end

    string_inner, _ = add_body(tables, body, close, slice_id=STRING_SLICE)
    string = tables.add_state(byte=QUOTE, target=string_inner)
    number = _add_plain_number(tables) if is_plain else _add_number(tables, is_integer=False)
    integer = _add_plain_integer(tables) if is_plain else _add_number(tables, is_integer=True)
    words = {word: _add_word(tables, word.encode(), end) for word in ("null", "true", "false")}

    escape = _add_escape(tables)
    return JsonBaseStates(
        tables, end, blanks, blank_row, gap_row, string, string_inner, number, integer, words, escape, body
    )


def add_pair(
    tables: Tables, row: int, row_without: int, byte: int = 256, target: int = NONE, *, param: int = -1, block: int = 0
) -> int:
    """A state where blanks are allowed, followed by one where none are; returns the first."""
    first = tables.num_states
    rest = (byte, target, param, OPEN, block, 0, 0)
    tables.states.extend((row, *rest, row_without, *rest))
    return first


def _add_blanks(tables: Tables, end: int) -> int:
    """Add a frame for one or two blanks, or a line break and up to MAX_INDENT blanks, which are counted in its register."""
    start_row = tables.add_rows(4)
    blank_row, break_row, return_row = start_row + 1, start_row + 2, start_row + 3
    start = tables.add_state(start_row)
    blank = tables.add_state(blank_row, acc=ENDS)
    line = tables.add_state(break_row, acc=ENDS)
    ret = tables.add_state(return_row)
    rows = tables.rows
    rows[start_row:] = NONE
    rows[start_row, list(b" \t")] = blank
    rows[start_row, list(b"\n")] = line
    rows[start_row, list(b"\r")] = ret
    rows[return_row, list(b"\n")] = line
    rows[blank_row, list(b" \t")] = end
    rows[break_row, list(b" \t")] = tables.action(COUNT, line, MAX_INDENT, MAX_INDENT)
    return start


def _add_escape(tables: Tables) -> int:
    """Add a frame for an escape in a name. It returns to the place of the name before the escape.

    The frame ends with the last byte of the escape, in whose place the name reads the character itself if it is printable ASCII but no
    quote and no backslash, else DEL, which stands for all characters that no declared name contains (see `json_objects`).
    """
    inner, escape, u = 0, 8, 9
    body = string_body()[escape:]  # the same escapes, but for the characters that are told apart
    zero, low_half, digits = len(body), len(body) + 1, len(body) + 2
    table = np.full((digits + 6, 256), NONE, dtype=np.int32)
    table[: len(body)] = np.where(body > inner, body - escape, NONE)
    other = tables.action(SPELL, _DEL)
    first = tables.num_states

    def edit(rows: NDArray[np.int32], _: int) -> None:
        rows[: len(body)][body == inner] = other
        rows[0, ord("/")] = tables.action(SPELL, ord("/"))
        rows[u - escape, ord("0")] = first + zero
        rows[zero, list(_HEX)] = first + 3  # two more digits
        rows[zero, ord("0")] = first + low_half
        rows[low_half, list(_HEX)] = first + 4  # one more digit
        for high in range(2, 8):
            rows[low_half, ord(str(high))] = first + digits + high - 2
            for digit in _HEX:
                char = 16 * high + int(chr(digit), 16)
                is_plain = char in _PLAIN and char != _DEL
                rows[digits + high - 2, digit] = tables.action(SPELL, char) if is_plain else other

    add_body(tables, table, edit)
    return tables.add_state(byte=BACKSLASH, target=first)


def _add_number(tables: Tables, *, is_integer: bool) -> int:
    """Add a frame for a number with at most MAX_DIGITS digits after the first ones of its whole part and its fraction, counted together.

    An integer has at most MAX_ZEROS zeros as its fraction, and its exponent is not negative.
    """
    digits = list(b"0123456789")
    start, minus, zero, whole, point = (tables.add_state(tables.add_row(), acc=acc) for acc in (0, 0, ENDS, ENDS, 0))

    def row(state: int) -> NDArray[np.int32]:
        found: NDArray[np.int32] = tables.rows[tables.state(state, ROW)]
        return found

    def counted(state: int) -> int:
        return tables.action(COUNT, state, MAX_DIGITS, MAX_DIGITS)

    for state in (start, minus):
        row(state)[digits] = whole
        row(state)[ord("0")] = zero
    row(start)[ord("-")] = minus
    row(whole)[digits] = counted(whole)
    row(zero)[ord(".")] = row(whole)[ord(".")] = point
    ends = [zero, whole]
    if is_integer:  # 1.0 and 1e3 are integers in JSON Schema
        before = point
        for _ in range(MAX_ZEROS):
            ends.append(tables.add_state(tables.add_row(), acc=ENDS))
            row(before)[ord("0")] = ends[-1]
            before = ends[-1]
    else:
        ends.append(tables.add_state(tables.add_row(), acc=ENDS))
        row(point)[digits] = ends[-1]
        row(ends[-1])[digits] = counted(ends[-1])
    exponent, plus, less = (tables.add_state(tables.add_row()) for _ in range(3))
    # Digits of the exponent, from -324 to 308, so that programs can read the number.
    low, three, less_three, high, one_more, thirty, less_thirty_two = (
        tables.add_state(tables.add_row(), acc=ENDS) for _ in range(7)
    )
    no_more = tables.add_state(acc=ENDS)
    for state in ends:
        row(state)[list(b"eE")] = exponent
    for state, target in ((low, one_more), (one_more, no_more)):
        row(state)[digits] = target
    for state in (exponent, plus, less):
        row(state)[digits[:3]], row(state)[digits[4:]] = low, high
        row(state)[digits[3]] = less_three if state == less else three
    for state in (three, less_three, high):
        row(state)[digits] = no_more
    row(three)[digits[0]], row(less_three)[digits[:2]], row(less_three)[digits[2]] = thirty, one_more, less_thirty_two
    row(thirty)[digits[:9]] = row(less_thirty_two)[digits[:5]] = no_more
    row(exponent)[list(b"+-")] = plus, less
    if is_integer:
        less_zero, less_zeros = (tables.add_state(tables.add_row(), acc=ENDS) for _ in range(2))
        row(less)[:] = NONE
        row(less)[ord("0")], row(less_zero)[ord("0")] = less_zero, less_zeros
    return start


def _add_plain_integer(tables: Tables) -> int:
    """Add a frame for an integer written as digits alone, with at most MAX_DIGITS after the first one. Zero has no sign."""
    start, minus, zero, whole = (tables.add_state(tables.add_row(), acc=acc) for acc in (0, 0, ENDS, ENDS))
    rows = [tables.rows[tables.state(state, ROW)] for state in (start, minus, zero, whole)]
    rows[0][list(b"123456789")] = rows[1][list(b"123456789")] = whole
    rows[0][ord("0")], rows[0][ord("-")] = zero, minus
    rows[3][list(b"0123456789")] = tables.action(COUNT, whole, MAX_DIGITS, MAX_DIGITS)
    return start


def _add_plain_number(tables: Tables) -> int:
    """Add a frame for a plain number (see `number_rules.PlainForm`) with as many digits as `_add_number` allows."""
    digits = list(b"0123456789")
    start, minus, zero, one, whole = (tables.add_state(tables.add_row(), acc=acc) for acc in (0, 0, ENDS, ENDS, ENDS))
    point, fraction, one_point, one_fraction = (
        tables.add_state(tables.add_row(), acc=acc) for acc in (0, ENDS, 0, ENDS)
    )
    exponent, plus, less = (tables.add_state(tables.add_row()) for _ in range(3))
    low, three, less_three, high, one_more, thirty, less_thirty_two = (
        tables.add_state(tables.add_row(), acc=ENDS) for _ in range(7)
    )
    no_more = tables.add_state(acc=ENDS)

    def put(state: int, chars: list[int], target: int) -> None:
        tables.rows[tables.state(state, ROW), chars] = target

    def counted(state: int) -> int:
        return tables.action(COUNT, state, MAX_DIGITS, MAX_DIGITS)

    put(start, [ord("-")], minus)
    for state in (start, minus):
        put(state, digits[1:], one)
        put(state, digits[:1], zero)
    put(one, digits, counted(whole))
    put(whole, digits, counted(whole))
    for state, target in ((zero, point), (whole, point), (one, one_point)):
        put(state, [ord(".")], target)
    for state, target in ((point, fraction), (one_point, one_fraction)):
        put(state, digits, target)
        put(target, digits, counted(target))
    for state in (one, one_fraction):
        put(state, list(b"eE"), exponent)
    # Digits of the exponent, from -324 to MAX_PLAIN_EXPONENT, which is 307.
    put(exponent, [ord("+")], plus)
    put(exponent, [ord("-")], less)
    for state in (exponent, plus, less):
        put(state, digits[:3], low)
        put(state, digits[4:], high)
        put(state, digits[3:4], less_three if state == less else three)
    put(low, digits, one_more)
    for state in (one_more, three, less_three, high):
        put(state, digits, no_more)
    put(three, digits[:1], thirty)
    put(less_three, digits[:2], one_more)
    put(less_three, digits[2:3], less_thirty_two)
    put(thirty, digits[:8], no_more)
    put(less_thirty_two, digits[:5], no_more)
    return start


def _add_word(tables: Tables, word: bytes, end: int) -> int:
    first = tables.num_states
    for i, byte in enumerate(word):
        tables.add_state(byte=byte, target=end if i == len(word) - 1 else first + i + 1)
    return first
