"""Operations on registers of many words: the names that an object with more names than one word holds has seen, and their count.

The words lie in memory, in the *block* of the row's frame, and a walk never writes them. While a walk is in such a frame, its register is
what changed: up to three names, whether the object began in this walk, and where its description is; 0: nothing has changed.
`write_block` brings the block up to date once a token is sampled.

A description is two lines of operations. First: the required names in words of NAME_BITS, then the number of names with an order, the names
that an undeclared name excludes (those below this number), and the number of words. Second: names that count as seen from the start, and
the cap of the count.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.grammar.register_kernel import OP_WORDS, num_bits
from rtlang_kernels.triton.primitives.jit import jit

NAME_BITS, MAX_NAME_WORDS, BLOCK_WORDS = tl.constexpr(60), tl.constexpr(9), tl.constexpr(10)
"""Names in a word, words of names, and words of a block: the count, then the names."""
LARGE = tl.constexpr(16)  # added to the kinds of operations on one word
KEY, KEY_END, OTHER = tl.constexpr(22), tl.constexpr(23), tl.constexpr(24)
PHASE, CLOSE, COMMA, NEW = tl.constexpr(25), tl.constexpr(26), tl.constexpr(27), tl.constexpr(28)
# A changed register: names (13 bits each, the number plus 1), whether the object is new, the line of its description.
CHANGE_BITS, CHANGE_MASK, UNDECLARED = tl.constexpr(13), tl.constexpr(0x1FFF), tl.constexpr(0x1FFF)
CHANGES_MASK, IS_NEW, DESCRIBED_AT = tl.constexpr((1 << 39) - 1), tl.constexpr(1 << 39), tl.constexpr(40)


@jit
def _below(number: tl.tensor, word: tl.tensor) -> tl.tensor:
    """Bits of a word for the names below a number."""
    count = tl.minimum(tl.maximum(number - word * NAME_BITS, 0), NAME_BITS)
    return (tl.full([1], 1, tl.int64) << count.to(tl.int64)) - 1


@jit
def _added(register: tl.tensor, word: tl.tensor, ordered: tl.tensor, excluded: tl.tensor) -> tl.tensor:
    """Bits of a word that the changes add."""
    bits = register * 0
    for each in tl.static_range(3):
        name = ((register >> (each * CHANGE_BITS)) & CHANGE_MASK).to(tl.int32) - 1
        is_there, is_other = name >= 0, name == UNDECLARED - 1
        at = name - word * NAME_BITS
        is_here = is_there & ~is_other & (at >= 0) & (at < NAME_BITS)
        bit = tl.full([1], 1, tl.int64) << tl.where(is_here, at, 0).to(tl.int64)
        passed = tl.where((name < ordered) & ~is_other, name, excluded)
        bits = bits | tl.where(is_here, bit, 0) | _below(tl.where(is_there, passed, 0), word)
    return bits


@jit
def _num_changes(register: tl.tensor) -> tl.tensor:
    num = register * 0
    for each in tl.static_range(3):
        num = num + (((register >> (each * CHANGE_BITS)) & CHANGE_MASK) != 0).to(tl.int64)
    return num


@jit
def act_on_block(
    acts: tl.tensor,
    kind: tl.tensor,
    words: tl.tensor,
    ops: tl.tensor,
    register: tl.tensor,
    block: tl.tensor,
) -> tuple[tl.tensor, ...]:
    """Execute an operation per lane where `acts`. Returns whether it is possible, the next state, the register, and whether it is lost.

    Args:
        words: of the operation, in `ops`.
        block: of the frame.
    """
    num_words = tl.load(words + 3, mask=acts, other=0).to(tl.int32)
    described_at = tl.load(words + 4, mask=acts, other=0)
    names_at = tl.load(words + 5, mask=acts, other=-1)
    name = tl.load(words + 6, mask=acts, other=-1).to(tl.int32)
    flags = tl.load(words + 7, mask=acts, other=0)
    about = ops + described_at * OP_WORDS
    ordered = tl.load(about + MAX_NAME_WORDS, mask=acts, other=0).to(tl.int32)
    excluded = tl.load(about + (MAX_NAME_WORDS + 1), mask=acts, other=0).to(tl.int32)
    is_new, is_ordered = (register & IS_NEW) != 0, (flags & 1) != 0
    reads = acts & ~is_new
    num_missing, misses_ordered = register * 0, (register * 0) != 0
    # whether a name may come if there is room for any, and whether one that is required may come
    some, some_required = register * 0, register * 0
    for word in range(tl.max(tl.where(acts, num_words, 0))):
        on = acts & (word < num_words)
        required = tl.load(about + word, mask=on, other=0)
        seen = tl.load(block + 1 + word, mask=on & ~is_new, other=0)
        seen = seen | tl.load(about + OP_WORDS + word, mask=on & is_new, other=0)
        seen = seen | _added(register, word, ordered, excluded)
        names = tl.load(ops + names_at * OP_WORDS + word, mask=on & (names_at >= 0), other=0)
        at = name - word * NAME_BITS
        is_here = on & (at >= 0) & (at < NAME_BITS) & (name >= 0)
        names = names | tl.where(is_here, tl.full([1], 1, tl.int64) << tl.where(is_here, at, 0).to(tl.int64), 0)
        missing = required & ~seen
        # a name with an order comes before no missing name below it; names without, after those with an order if `excluded`
        had_missing = num_missing > 0
        num_missing = num_missing + num_bits(missing)
        lowest = missing & -missing
        until = tl.where(had_missing, 0, tl.where(lowest == 0, -1, (lowest << 1) - 1))
        with_order = _below(ordered, word)
        misses_ordered = misses_ordered | ((missing & with_order) != 0)
        rest = tl.where((excluded > 0) & misses_ordered, 0, ~with_order)
        possible = names & ~seen & tl.where(is_ordered, (with_order & until) | rest, -1)
        some, some_required = some | possible, some_required | (possible & required)
    least, most = tl.load(words + 8, mask=acts, other=0), tl.load(words + 9, mask=acts, other=-1)
    is_counted = tl.load(words + 11, mask=acts, other=0) != 0
    count = tl.load(block, mask=reads & is_counted, other=0) + _num_changes(register)
    count = tl.where(is_counted, tl.minimum(count, tl.load(words + 10, mask=acts, other=0)), 0)
    is_free = (most < 0) | (most - count - num_missing > 0)
    has_name = (some_required != 0) | (is_free & (some != 0))
    is_other, is_end = kind == OTHER, kind == KEY_END
    goes = (kind == PHASE) | (kind == NEW) | (((kind == KEY) | is_end) & has_name)
    goes = goes | (is_other & is_free & ~(((flags & 2) != 0) & (num_missing > 0)))
    goes = goes | ((kind == CLOSE) & (num_missing == 0) & (count >= least))
    goes = goes | ((kind == COMMA) & (has_name | (((flags & 4) != 0) & is_free)))
    changes = is_end | is_other
    is_lost = acts & goes & changes & ((register & CHANGES_MASK) >> (2 * CHANGE_BITS) != 0)
    changed = ((register & CHANGES_MASK) << CHANGE_BITS) | tl.where(is_other, UNDECLARED, name + 1).to(tl.int64)
    changed = changed | (register & IS_NEW) | (described_at << DESCRIBED_AT)
    register = tl.where(changes, changed, register)
    register = tl.where(kind == NEW, IS_NEW | (described_at << DESCRIBED_AT), tl.where(kind == CLOSE, 0, register))
    first, second = tl.load(words + 1, mask=acts, other=0), tl.load(words + 2, mask=acts, other=0)
    target = tl.where((kind == PHASE) & (num_missing == 0), second, first)
    return goes & acts & ~is_lost, target.to(tl.int32), register, is_lost


@jit
def write_block(writes: tl.tensor, register: tl.tensor, ops: tl.tensor, block: tl.tensor) -> tl.tensor:
    """Write a changed register to its block where `writes`; returns the register afterwards."""
    writes = writes & (register != 0)
    if tl.max(writes.to(tl.int32)) > 0:
        about = ops + (register >> DESCRIBED_AT) * OP_WORDS
        is_new = (register & IS_NEW) != 0
        ordered = tl.load(about + MAX_NAME_WORDS, mask=writes, other=0).to(tl.int32)
        excluded = tl.load(about + (MAX_NAME_WORDS + 1), mask=writes, other=0).to(tl.int32)
        cap = tl.load(about + (OP_WORDS + MAX_NAME_WORDS), mask=writes, other=0)
        count = tl.load(block, mask=writes & ~is_new, other=0) + _num_changes(register)
        tl.store(block, tl.minimum(count, cap), mask=writes)
        for word in range(MAX_NAME_WORDS):
            seen = tl.load(block + 1 + word, mask=writes & ~is_new, other=0)
            seen = seen | tl.load(about + OP_WORDS + word, mask=writes & is_new, other=0)
            tl.store(block + 1 + word, seen | _added(register, word, ordered, excluded), mask=writes)
    return tl.where(writes, 0, register)
