"""Keeps the names in one object of JSON text distinct, whatever they are and however they are spelled.

A *trail* is read beside the tables: the containers that are open, the names in each of the objects, and the name that is being read. It
depends on the text alone. It lies after the words of a configuration, so that forks share it and masks are cached without it; a mask is
then cleared of the few tokens that would complete a name for the second time.

A trail is int64: a header, then the open containers, outermost first. A container is the offset of the one around it (0: none), whether it
is an object, and the number of its names, then each name as its length and its bytes in UTF-8. Bounded: the first MAX_NAMES names of an
object are kept, and MAX_WORDS words in all; names beyond that are not compared with later ones.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, misc, no-untyped-call"

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtlang_grammars.machine.native.array_types import INT, INT32, INT64, TEXT
from rtlang_grammars.machine.native.native_code import compiled

MAX_NAMES = 256
MAX_WORDS = 1 << 14
ROOM = MAX_WORDS + (1 << 12)
"""Words of the array in which a trail is made; the rest is for containers."""
LENGTH, MODE, ESCAPE, UNIT, HIGH, TOP, NAME, TOTAL, RISK = range(9)
"""Header: words; mode; progress of an escape; its digits so far; a high surrogate that waits for the low one; offsets of the innermost
container and of the name that is read (0: none); number of names that are kept; which tokens may repeat a name."""
_HEADER = 9
NO_TOKENS, WITH_NAME, WITH_WHOLE_NAME, WITH_END = range(4)
"""RISK: none; those with a whole name after a comma or brace; also those that begin with a whole name; also those that end a name."""
_NAME_WITHIN = re.compile(rb'[,{][ \t\r\n]*".*"', re.DOTALL)
_ENDING = re.compile(rb'((?:[^"\\]|\\.)*)"', re.DOTALL)
_WHOLE = re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*)"', re.DOTALL)
IN_VALUE, IN_STRING, IN_NAME, BEFORE_NAME, LOST = range(5)
"""Modes. LOST: too many containers are open to go on."""
_QUOTE, _BACKSLASH = 0x22, 0x5C


def start_trail() -> NDArray[np.int64]:
    """The trail at the start of a text."""
    trail = np.zeros(_HEADER, dtype=np.int64)
    trail[LENGTH] = _HEADER
    trail[RISK] = WITH_NAME
    return trail


class NamedTokens(NamedTuple):
    """Tokens by the text that they add to a name, sorted by it.

    Attributes:
        tokens: int32 [n].
        texts, starts: uint8 and int64 [n + 1]: tokens[i] adds texts[starts[i]:starts[i + 1]], with escapes decoded.
    """

    tokens: NDArray[np.int32]
    texts: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, texts: dict[int, bytes], pattern: re.Pattern[bytes]) -> NamedTokens:
        """Those that begin with a match of `pattern`, whose group is the text."""
        found = [(_decoded(match[1]), token) for token, text in texts.items() if (match := pattern.match(text))]
        found.sort()
        return cls(
            np.array([token for _, token in found], dtype=np.int32),
            np.frombuffer(b"".join(text for text, _ in found) + b"\0", dtype=np.uint8),
            np.array([0, *accumulate(len(text) for text, _ in found)], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class RiskyTokens:
    """The tokens of a vocabulary that may complete a name.

    Attributes:
        ending: those that may end the name that is read.
        whole: those that may begin with a whole name.
        within: int32, those that may hold a whole name after a comma or brace.
    """

    ending: NamedTokens
    whole: NamedTokens
    within: NDArray[np.int32]

    @classmethod
    def of(cls, data: NDArray[np.uint8], offsets: NDArray[np.int64], order: NDArray[np.int32]) -> RiskyTokens:
        """Those of a trie; see `TokenTrie`."""
        has_quote = np.zeros(len(offsets), dtype=np.bool_)
        has_quote[np.searchsorted(offsets, np.flatnonzero(data == _QUOTE), side="right") - 1] = True
        tokens = order[has_quote[order]].tolist()
        texts = {token: data[offsets[token] : offsets[token + 1]].tobytes() for token in tokens}
        within = [token for token, text in texts.items() if _NAME_WITHIN.search(text)]
        return cls(NamedTokens.of(texts, _ENDING), NamedTokens.of(texts, _WHOLE), np.array(within, dtype=np.int32))


def _decoded(text: bytes) -> bytes:
    """What a token adds to a name; a token that is not valid text adds itself, but is allowed nowhere."""
    if b"\\" not in text:
        return text
    try:
        return str(json.loads(b'"' + text + b'"')).encode("utf-8", "surrogatepass")
    except ValueError:
        return text


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


@compiled(INT64, TEXT, INT, INT, INT64, nogil=True)
def repeats(trail, data, start, end, t):  # pragma: no cover
    """Whether a name comes twice in data[start:end]; t is scratch, int64 [ROOM]."""
    return follow(trail, data, start, end, t) < 0


@compiled(inner=True)
def follow(trail, data, start, end, t):  # pragma: no cover
    """Write the trail after data[start:end] into t, int64 [ROOM]; returns its length, -1 if a name comes twice."""
    for i in range(trail[LENGTH]):
        t[i] = trail[i]
    for at in range(start, end):
        if not _read(t, np.int64(data[at])):
            return np.int64(-1)
    t[RISK] = _risk(t)
    return np.int64(t[LENGTH])


@compiled(inner=True)
def _risk(t):  # pragma: no cover
    mode = t[MODE]
    if mode == LOST:
        return NO_TOKENS
    if mode == IN_NAME and t[NAME] != 0:
        if t[ESCAPE] != 0 or t[HIGH] != 0:
            return WITH_END
        at = t[TOP] + 3
        for _ in range(t[t[TOP] + 2]):
            if _begins(t, at):
                return WITH_END
            at += t[at] + 1
    if mode == BEFORE_NAME and t[t[TOP] + 2] > 0:
        return WITH_WHOLE_NAME
    return WITH_NAME


@compiled(inner=True)
def _begins(t, at):  # pragma: no cover
    """Whether the name that is read is the beginning of the one at t[at]."""
    name = t[NAME]
    size = t[LENGTH] - name - 1
    differs = t[at] < size
    i = 1
    while i <= size and not differs:
        differs = t[at + i] != t[name + i]
        i += 1
    return not differs


@compiled(INT64, INT32, TEXT, INT64, INT32, TEXT, INT64, INT64, INT32, nogil=True)
def find_repeats(trail, tokens, texts, starts, within, data, offsets, t, found):  # pragma: no cover
    """Write the tokens that complete a name for the second time into `found`; returns their number.

    Args:
        tokens, texts, starts: see `NamedTokens`; those that end a name if one is read, else whole names.
        within: see `RiskyTokens`.
        data, offsets: the bytes of all tokens, see `TokenTrie`.
        t: int64 [ROOM], scratch.
    """
    risk = trail[RISK]
    count = np.int64(0)
    if risk == NO_TOKENS:
        return count
    count = _find(trail, within, data, offsets, t, found, count)
    if risk == WITH_NAME:
        return count
    if trail[ESCAPE] != 0 or trail[HIGH] != 0:
        return _find(trail, tokens, data, offsets, t, found, count)
    is_begun = risk == WITH_END
    done = trail[LENGTH] - trail[NAME] - 1 if is_begun else np.int64(0)
    top = trail[TOP]
    at = top + 3
    for _ in range(trail[top + 2]):
        if not is_begun or _begins(trail, at):
            count = _find_named(trail, at + 1 + done, at + 1 + trail[at], tokens, texts, starts, found, count)
        at += trail[at] + 1
    return count


@compiled(inner=True)
def _find_named(trail, begin, end, tokens, texts, starts, found, count):  # pragma: no cover
    """The tokens that add trail[begin:end] to a name."""
    low, high = np.int64(0), np.int64(tokens.shape[0])
    while low < high:
        middle = (low + high) // 2
        if _compare(trail, begin, end, texts, starts, middle) > 0:
            low = middle + 1
        else:
            high = middle
    while low < tokens.shape[0] and _compare(trail, begin, end, texts, starts, low) == 0:
        found[count] = tokens[low]
        count += 1
        low += 1
    return count


@compiled(inner=True)
def _compare(trail, begin, end, texts, starts, i):  # pragma: no cover
    """1, 0 or -1, as trail[begin:end] comes after, equals or comes before text i."""
    at, stop = starts[i], starts[i + 1]
    while begin < end and at < stop:
        one, other = trail[begin], np.int64(texts[at])
        if one != other:
            return 1 if one > other else -1
        begin += 1
        at += 1
    return 1 if begin < end else -1 if at < stop else 0


@compiled(INT32, INT32, INT32, nogil=True)
def remove(ids, unwanted, kept):  # pragma: no cover
    """Write `ids` without the tokens `unwanted` into `kept`; returns their number."""
    count = np.int64(0)
    for i in range(ids.shape[0]):
        is_kept = True
        for k in range(unwanted.shape[0]):
            is_kept = is_kept and ids[i] != unwanted[k]
        if is_kept:
            kept[count] = ids[i]
            count += 1
    return count


@compiled(inner=True)
def _find(trail, tokens, data, offsets, t, found, count):  # pragma: no cover
    """Try tokens byte by byte; see `find_repeats`."""
    size = trail[LENGTH]
    for i in range(tokens.shape[0]):
        token = tokens[i]
        for k in range(size):
            t[k] = trail[k]
        for at in range(offsets[token], offsets[token + 1]):
            if not _read(t, np.int64(data[at])):
                found[count] = token
                count += 1
                break
    return count
