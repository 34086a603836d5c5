"""Keeps the names in one object of JSON text distinct, whatever they are and however they are spelled.

A *trail* is read beside the tables: the containers that are open, the names in each of the objects, and the name that is being read. It
depends on the text alone. It lies behind the words of a configuration, so that forks share it and masks are cached without it; a mask is
then cleared of the few tokens that would complete a name for the second time.

A trail is int64: a header, then the open containers, outermost first. A container is the offset of the one around it (0: none), whether it
is an object, and the number of its names, then each name as its length and its bytes in UTF-8. Bounded: the first MAX_NAMES names of an
object are kept, and MAX_WORDS words in all; names beyond that are not compared with later ones.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.native_code import compiled

MAX_NAMES = 256
MAX_WORDS = 1 << 14
ROOM = MAX_WORDS + (1 << 12)
"""Words of the array in which a trail is made; the rest is for containers."""
LENGTH, MODE, ESCAPE, UNIT, HIGH, TOP, NAME, TOTAL = range(8)
"""Header: words; mode; progress of an escape; its digits so far; a high surrogate that waits for the low one; offsets of the innermost
container and of the name that is read (0: none); number of names that are kept."""
_HEADER = 8
IN_VALUE, IN_STRING, IN_NAME, BEFORE_NAME, LOST = range(5)
"""Modes. LOST: too many containers are open to go on."""
_QUOTE, _BACKSLASH = 0x22, 0x5C


def start_trail() -> NDArray[np.int64]:
    """The trail at the start of a text."""
    trail = np.zeros(_HEADER, dtype=np.int64)
    trail[LENGTH] = _HEADER
    return trail


def kept_names(trail: NDArray[np.int64]) -> frozenset[str]:
    """All names in the objects that are open."""
    names = set()
    at = int(trail[TOP])
    while at:
        begin = at + 3
        for _ in range(int(trail[at + 2])):
            end = begin + 1 + int(trail[begin])
            names.add(bytes(trail[begin + 1 : end].tolist()).decode("utf-8", "surrogatepass"))
            begin = end
        at = int(trail[at])
    return frozenset(names)


@compiled(inner=True)
def _write(t, byte):  # pragma: no cover
    """Add a byte to the name that is read."""
    if t[NAME] == 0:
        return
    if t[LENGTH] >= MAX_WORDS:
        t[LENGTH], t[NAME] = t[NAME], 0
        return
    t[t[LENGTH]] = byte
    t[LENGTH] += 1


@compiled(inner=True)
def _write_unit(t, unit):  # pragma: no cover
    """Add a 16-bit unit that is no half of a pair, as UTF-8."""
    if unit < 0x80:
        _write(t, unit)
    elif unit < 0x800:
        _write(t, 0xC0 | (unit >> 6))
        _write(t, 0x80 | (unit & 63))
    else:
        _write(t, 0xE0 | (unit >> 12))
        _write(t, 0x80 | ((unit >> 6) & 63))
        _write(t, 0x80 | (unit & 63))


@compiled(inner=True)
def _write_escaped(t, unit):  # pragma: no cover
    """Add a 16-bit unit that an escape spells."""
    if t[HIGH] != 0 and 0xDC00 <= unit < 0xE000:
        point = 0x10000 + ((t[HIGH] - 0xD800) << 10) + (unit - 0xDC00)
        t[HIGH] = 0
        _write(t, 0xF0 | (point >> 18))
        _write(t, 0x80 | ((point >> 12) & 63))
        _write(t, 0x80 | ((point >> 6) & 63))
        _write(t, 0x80 | (point & 63))
        return
    _settle(t)
    if 0xD800 <= unit < 0xDC00:
        t[HIGH] = unit
    else:
        _write_unit(t, unit)


@compiled(inner=True)
def _settle(t):  # pragma: no cover
    """Add a high surrogate that no low one follows."""
    if t[HIGH] != 0:
        unit = t[HIGH]
        t[HIGH] = 0
        _write_unit(t, unit)


@compiled(inner=True)
def _end_name(t):  # pragma: no cover
    """Complete the name that is read; False if its object has it already."""
    _settle(t)
    t[MODE] = IN_VALUE
    name = t[NAME]
    if name == 0:
        return True
    size = t[LENGTH] - name - 1
    top = t[TOP]
    at = top + 3
    for _ in range(t[top + 2]):
        length = t[at]
        if length == size:
            differs = False
            for i in range(size):
                differs = differs or t[at + 1 + i] != t[name + 1 + i]
            if not differs:
                return False
        at += length + 1
    t[NAME] = 0
    if t[top + 2] >= MAX_NAMES:
        t[LENGTH] = name
    else:
        t[name] = size
        t[top + 2] += 1
        t[TOTAL] += 1
    return True


@compiled(inner=True)
def _read_in_name(t, b):  # pragma: no cover
    escape = t[ESCAPE]
    if escape == 0:
        if b == _QUOTE:
            return _end_name(t)
        if b == _BACKSLASH:
            t[ESCAPE] = 1
        else:
            _settle(t)
            _write(t, b)
        return True
    if escape == 1:
        t[ESCAPE] = 0
        if b == 0x75:  # u
            t[ESCAPE], t[UNIT] = 5, 0
            return True
        char = b
        if b == 0x62:  # b
            char = 8
        elif b == 0x66:  # f
            char = 12
        elif b == 0x6E:  # n
            char = 10
        elif b == 0x72:  # r
            char = 13
        elif b == 0x74:  # t
            char = 9
        _settle(t)
        _write(t, char)
        return True
    digit = b - 0x30
    if b >= 0x61:
        digit = b - 0x57
    elif b >= 0x41:
        digit = b - 0x37
    t[UNIT] = 16 * t[UNIT] + digit
    t[ESCAPE] = escape - 1
    if escape == 2:
        t[ESCAPE] = 0
        _write_escaped(t, t[UNIT])
    return True


@compiled(inner=True)
def _read(t, b):  # pragma: no cover
    """Follow one byte; False if it completes a name that the object has already."""
    mode = t[MODE]
    if mode == IN_NAME:
        return _read_in_name(t, b)
    if mode == LOST:
        return True
    if mode == IN_STRING:
        if t[ESCAPE] != 0:
            t[ESCAPE] = 0
        elif b == _BACKSLASH:
            t[ESCAPE] = 1
        elif b == _QUOTE:
            t[MODE] = IN_VALUE
        return True
    top = t[TOP]
    if b == _QUOTE:
        t[MODE], t[ESCAPE], t[HIGH] = IN_STRING, 0, 0
        if mode == BEFORE_NAME:
            t[MODE] = IN_NAME
            if t[LENGTH] < MAX_WORDS:
                t[NAME] = t[LENGTH]
                t[LENGTH] += 1
    elif b in (0x7B, 0x5B):  # { [
        if t[LENGTH] + 3 > ROOM:
            t[MODE] = LOST
            return True
        at = t[LENGTH]
        t[at], t[at + 1], t[at + 2] = top, np.int64(b == 0x7B), 0
        t[TOP], t[LENGTH] = at, at + 3
        t[MODE] = BEFORE_NAME if b == 0x7B else IN_VALUE
    elif b in (0x7D, 0x5D):  # } ]
        t[MODE] = IN_VALUE
        if top != 0:
            t[TOTAL] -= t[top + 2]
            t[LENGTH], t[TOP] = top, t[top]
    elif b == 0x2C and top != 0 and t[top + 1] == 1:  # ,
        t[MODE] = BEFORE_NAME
    return True


@compiled(nogil=True)
def follow(trail, data, start, end, t):  # pragma: no cover
    """Write the trail after data[start:end] into t, int64 [ROOM]; returns its length, -1 if a name comes twice."""
    for i in range(trail[LENGTH]):
        t[i] = trail[i]
    for at in range(start, end):
        if not _read(t, np.int64(data[at])):
            return np.int64(-1)
    return np.int64(t[LENGTH])


@compiled(nogil=True)
def find_repeats(trail, ids, num_quotes, data, offsets, t, first, found):  # pragma: no cover
    """Write those of the tokens `ids` that complete a name for the second time into `found`; returns their number.

    Args:
        num_quotes: uint8 by token, quotes in it.
        data, offsets: the bytes of all tokens, see `TokenTrie`.
        t: int64 [ROOM], scratch. first: int64 [256], scratch.
    """
    mode = trail[MODE]
    if mode == LOST:
        return 0
    # Quotes that complete a name, the first one or, without names that were kept, a second one that equals it.
    needed = 3 if mode == IN_STRING else 1 if mode == IN_NAME else 2
    if trail[TOTAL] == 0:
        needed += 2
    elif mode == IN_NAME:
        _mark_next(trail, first)
    size = trail[LENGTH]
    count = 0
    for i in range(ids.shape[0]):
        token = ids[i]
        quotes = num_quotes[token]
        begin, end = offsets[token], offsets[token + 1]
        if quotes < needed or (mode == IN_NAME and quotes < 3 and first[data[begin]] == 0):
            continue
        for k in range(size):
            t[k] = trail[k]
        for at in range(begin, end):
            if not _read(t, np.int64(data[at])):
                found[count] = token
                count += 1
                break
    return count


@compiled(inner=True)
def _mark_next(trail, first):  # pragma: no cover
    """Mark in `first` the bytes that may lead from the name that is read to one that its object has."""
    name = trail[NAME]
    is_within = trail[ESCAPE] != 0 or trail[HIGH] != 0
    for b in range(256):
        first[b] = np.int64(is_within and name != 0)
    if is_within or name == 0:
        return
    size = trail[LENGTH] - name - 1
    top = trail[TOP]
    at = top + 3
    for _ in range(trail[top + 2]):
        length = trail[at]
        if length >= size:
            differs = False
            for i in range(size):
                differs = differs or trail[at + 1 + i] != trail[name + 1 + i]
            if not differs:
                first[_QUOTE if length == size else trail[at + 1 + size]] = 1
                first[_BACKSLASH] = 1
        at += length + 1
