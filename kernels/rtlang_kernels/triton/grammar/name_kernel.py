"""Follows the names in JSON text, so that no object has a name twice: part of the kernels of automata.

The text alone says where names are: a mode, the progress of an escape, and a digest of the name that is read. Names are compared by 64-bit
digests of their bytes in UTF-8, with escapes decoded, so that every spelling of a name is the same name.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

IN_VALUE, IN_STRING, IN_NAME, BEFORE_NAME = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
NOTHING, OPENS_OBJECT, OPENS_ARRAY, CLOSES = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
NAME_ENDS, COMMA = tl.constexpr(4), tl.constexpr(5)
DIGEST_START, DIGEST_FACTOR = tl.constexpr(0xCBF29CE484222325 - (1 << 64)), tl.constexpr(0x100000001B3)


@jit
def _write(digest: tl.tensor, where: tl.tensor, byte: tl.tensor) -> tl.tensor:
    """Add a byte to the digest, FNV-1a with the upper half added to the lower."""
    added = (digest ^ byte.to(tl.int64)) * DIGEST_FACTOR
    added = added ^ ((added >> 32) & 0xFFFFFFFF)
    return tl.where(where, added, digest)


@jit
def _write_unit(digest: tl.tensor, where: tl.tensor, unit: tl.tensor) -> tl.tensor:
    """Add a 16-bit unit as UTF-8."""
    is_one, is_three = unit < 0x80, unit >= 0x800
    first = tl.where(is_one, unit, tl.where(is_three, 0xE0 | (unit >> 12), 0xC0 | (unit >> 6)))
    digest = _write(digest, where, first)
    digest = _write(digest, where & is_three, 0x80 | ((unit >> 6) & 63))
    return _write(digest, where & (unit >= 0x80), 0x80 | (unit & 63))


@jit
def _read_escape(
    in_escape: tl.tensor,
    settles: tl.tensor,
    byte: tl.tensor,
    escape: tl.tensor,
    code: tl.tensor,
    digest: tl.tensor,
) -> tuple[tl.tensor, ...]:
    """Follow a byte of an escape in a name, or one after a high surrogate. Returns escape, code and digest.

    `code` holds the digits so far in its lower 16 bits, and above them a high surrogate that waits for the low one.
    """
    high = (code >> 16) & 0xFFFF
    is_first = in_escape & (escape == 1)
    is_unit = is_first & (byte == 0x75)  # u
    is_char = is_first & (byte != 0x75)
    is_digit = in_escape & (escape > 1)
    digit = tl.where(byte >= 0x61, byte - 0x57, tl.where(byte >= 0x41, byte - 0x37, byte - 0x30))
    unit = (16 * (code & 0xFFFF) + digit) & 0xFFFF
    is_done = is_digit & (escape == 2)
    is_pair = is_done & (high != 0) & (unit >= 0xDC00) & (unit < 0xE000)
    settled = (high != 0) & (settles | is_char | (is_done & ~is_pair))
    digest = _write_unit(digest, settled, high)
    point = 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00)
    digest = _write(digest, is_pair, 0xF0 | (point >> 18))
    digest = _write(digest, is_pair, 0x80 | ((point >> 12) & 63))
    digest = _write(digest, is_pair, 0x80 | ((point >> 6) & 63))
    digest = _write(digest, is_pair, 0x80 | (point & 63))
    high = tl.where(settled | is_pair, 0, high)
    is_high = is_done & ~is_pair & (unit >= 0xD800) & (unit < 0xDC00)
    high = tl.where(is_high, unit, high)
    digest = _write_unit(digest, is_done & ~is_pair & ~is_high, unit)
    char = tl.where(byte == 0x62, 8, byte)  # b
    char = tl.where(byte == 0x66, 12, char)  # f
    char = tl.where(byte == 0x6E, 10, char)  # n
    char = tl.where(byte == 0x72, 13, char)  # r
    char = tl.where(byte == 0x74, 9, char)  # t
    digest = _write(digest, is_char, char)
    escape = tl.where(is_unit, 5, tl.where(is_char | is_done, 0, tl.where(is_digit, escape - 1, escape)))
    digits = tl.where(is_unit | is_done, 0, tl.where(is_digit, unit, code & 0xFFFF))
    return escape, (high << 16) | digits, digest


@jit
def read_byte(
    reads: tl.tensor,
    byte: tl.tensor,
    mode: tl.tensor,
    escape: tl.tensor,
    code: tl.tensor,
    digest: tl.tensor,
) -> tuple[tl.tensor, ...]:
    """Follow one byte per lane where `reads`. Returns mode, escape, code, digest and the event.

    The caller keeps the containers, and sets the mode to BEFORE_NAME after a comma in an object.
    """
    is_outside = reads & ((mode == IN_VALUE) | (mode == BEFORE_NAME))
    in_string, in_name, is_plain = reads & (mode == IN_STRING), reads & (mode == IN_NAME), escape == 0
    is_quote = byte == 0x22
    begins = is_outside & is_quote
    begins_name = begins & (mode == BEFORE_NAME)
    ends_name = in_name & is_plain & is_quote
    writes = in_name & is_plain & ~is_quote & (byte != 0x5C)
    in_escape, settles = in_name & ~is_plain, (writes | ends_name) & ((code >> 16) != 0)
    escape = tl.where(in_string & ~is_plain, 0, escape)
    escape = tl.where((in_string | in_name) & is_plain & (byte == 0x5C), 1, escape)
    if tl.max((in_escape | settles).to(tl.int32)) > 0:
        escape, code, digest = _read_escape(in_escape, settles, byte, escape, code, digest)
    digest = _write(digest, writes, byte)
    digest = tl.where(begins_name, DIGEST_START, digest)
    escape, code = tl.where(begins, 0, escape), tl.where(begins, 0, code)
    event = tl.where(ends_name, NAME_ENDS, NOTHING)
    event = tl.where(is_outside & (byte == 0x7B), OPENS_OBJECT, event)
    event = tl.where(is_outside & (byte == 0x5B), OPENS_ARRAY, event)
    event = tl.where(is_outside & ((byte == 0x7D) | (byte == 0x5D)), CLOSES, event)
    event = tl.where(is_outside & (byte == 0x2C), COMMA, event)
    is_over = (in_string & is_plain & is_quote) | ends_name | (event == OPENS_ARRAY) | (event == CLOSES)
    mode = tl.where(begins, tl.where(begins_name, IN_NAME, IN_STRING), mode)
    mode = tl.where(is_over, IN_VALUE, mode)
    return tl.where(event == OPENS_OBJECT, BEFORE_NAME, mode), escape, code, digest, event
