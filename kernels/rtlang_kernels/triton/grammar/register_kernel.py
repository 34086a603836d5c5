"""Operations on the registers of automata: counts, and the set of names that an object has seen.

A register is one 64-bit word. Names seen are its lower bits; if properties are counted, the count lies from bit COUNT_SHIFT on.
`automaton_store` defines the operations.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

OP_WORDS, COUNT_SHIFT = tl.constexpr(12), tl.constexpr(32)
RANGE, COUNT, KEY, KEY_END, OTHER = tl.constexpr(4), tl.constexpr(5), tl.constexpr(6), tl.constexpr(7), tl.constexpr(8)
PHASE, CLOSE, COMMA_OP, NEW = tl.constexpr(9), tl.constexpr(10), tl.constexpr(11), tl.constexpr(12)


@jit
def num_bits(word: tl.tensor) -> tl.tensor:
    """Number of bits of a word below 2**62."""
    word = word - ((word >> 1) & 0x5555555555555555)
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    word = word + (word >> 8)
    word = word + (word >> 16)
    return (word + (word >> 32)) & 127


@jit
def _act_on_object(acts: tl.tensor, kind: tl.tensor, words: tl.tensor, register: tl.tensor) -> tuple[tl.tensor, ...]:
    """Returns whether the operation is possible, whether its other target is taken, and the register."""
    names = tl.load(words + 3, mask=acts, other=0)
    required = tl.load(words + 4, mask=acts, other=0)
    ordered = tl.load(words + 5, mask=acts, other=0)
    flags = tl.load(words + 6, mask=acts, other=0)
    passed = tl.load(words + 7, mask=acts, other=0)
    least, most = tl.load(words + 8, mask=acts, other=0), tl.load(words + 9, mask=acts, other=-1)
    cap = tl.load(words + 10, mask=acts, other=0)
    is_counted = tl.load(words + 11, mask=acts, other=0) != 0
    seen = tl.where(is_counted, register & 0xFFFFFFFF, register)
    count = tl.where(is_counted, register >> COUNT_SHIFT, 0)
    missing = required & ~seen
    is_free = (most < 0) | (most - count - num_bits(missing) > 0)
    # a name is possible if it is not seen, there is room for it, and no missing name that must come before it
    possible = names & ~seen & tl.where(is_free, -1, required)
    lowest = missing & -missing
    until = tl.where(lowest == 0, -1, (lowest << 1) - 1)
    is_late = ((flags & 2) != 0) & ((missing & ordered) != 0)
    in_order = possible & ((ordered & until) | tl.where(is_late, 0, ~ordered))
    has_name = tl.where((flags & 1) != 0, in_order, possible) != 0
    has_other = is_free & ~(((flags & 2) != 0) & (missing != 0))
    goes = (kind == PHASE) | (kind == NEW) | (((kind == KEY) | (kind == KEY_END)) & has_name)
    goes = goes | ((kind == OTHER) & has_other) | ((kind == CLOSE) & (missing == 0) & (count >= least))
    goes = goes | ((kind == COMMA_OP) & (has_name | (((flags & 4) != 0) & is_free)))
    added = tl.where(is_counted, tl.minimum(count + 1, cap) << COUNT_SHIFT, 0) | seen | passed
    register = tl.where((kind == KEY_END) | (kind == OTHER), added, register)
    register = tl.where(kind == NEW, passed, tl.where(kind == CLOSE, 0, register))
    return goes, (kind == PHASE) & (missing == 0), register


@jit
def act(acts: tl.tensor, kind: tl.tensor, words: tl.tensor, register: tl.tensor) -> tuple[tl.tensor, ...]:
    """Execute an operation per lane where `acts`. Returns whether it is possible, the next state, and the register."""
    first = tl.load(words + 1, mask=acts, other=0)
    second = tl.load(words + 2, mask=acts, other=0)
    third = tl.load(words + 3, mask=acts, other=0)
    fourth = tl.load(words + 4, mask=acts, other=0)
    least = tl.load(words + 5, mask=acts, other=0)
    counts, is_range = kind == COUNT, kind == RANGE
    more = tl.minimum(register + 1, fourth)
    goes = (counts & (register < third)) | (is_range & (register >= second) & (register <= third))
    takes_second = counts & (register + 1 >= least)
    after = tl.where(counts, more, tl.where(is_range, register & fourth, register))
    on_object = acts & (kind >= KEY)
    if tl.max(on_object.to(tl.int32)) > 0:
        may, is_second, changed = _act_on_object(on_object, kind, words, register)
        goes = tl.where(on_object, may, goes)
        takes_second = tl.where(on_object, is_second, takes_second)
        after = tl.where(on_object, changed, after)
    return goes & acts, tl.where(takes_second, second, first).to(tl.int32), after
