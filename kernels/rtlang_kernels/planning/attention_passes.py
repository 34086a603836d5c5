"""Passes of CPU attention: which tokens fold which keys, in which order.

A pass folds the keys of one table row, in blocks of 64 counted from position 0, into the states of a range of tokens. Every token folds
all blocks that hold a key it sees, in order of position, whatever the passes are: so its result does not depend on the tree, on the other
rows, or on how its prompt was cut into steps. At multiples of `SEGMENT` keys a token starts a second state, which is merged into its first
one at the end of the segment; segments could therefore be computed apart with the same bits.

The whole blocks of a shared prefix are one pass for all rows below it, which reads and packs its keys once. Rows with many tokens read all
keys themselves, since packing costs them little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_kernels.host.numba_jit import kernel

int64: Any = np.int64  # compiled code needs one type per scalar

# Fields of a pass, int32: tokens [TOKEN, TOKEN_END) of table row ROW (or of rows that share its pages) x positions [FIRST_KEY, LAST_KEY).
# SLOT: state of the first token; the others follow. IS_SECOND: it is the state of a later segment. IS_FIRST: the state starts empty.
# ENDS_SEGMENT: the second state is merged into the first one afterwards. IS_LAST: the results are written afterwards.
TOKEN, TOKEN_END, ROW, FIRST_KEY, LAST_KEY, SLOT, IS_SECOND, IS_FIRST, ENDS_SEGMENT, IS_LAST = range(10)
PASS_FIELDS = 10

BLOCK = 64  # keys
SEGMENT = 1024  # keys: 512 would merge twice as often, at 1 % of the time of a long prompt
MAX_LINES = 256  # query heads per KV head x tokens of one pass: packing a block costs 2 % of folding it, states stay in the second cache


@kernel()
def _put(
    passes: Any,
    count: Any,
    token: Any,
    token_end: Any,
    row: Any,
    slot: Any,
    covered: Any,
    first_key: Any,
    last_key: Any,
    first_segment: Any,
    is_first: Any,
    is_last: Any,
) -> Any:
    """Append the passes of one range of keys, cut at segments; returns the number of passes. Only counts once the table is full.

    A state that has folded the keys before `covered` gets a pass, maybe without keys, for every segment from there on.
    """
    key = first_key if is_first else covered
    while key < last_key:
        segment = key // SEGMENT
        stop = min(last_key, (segment + 1) * SEGMENT)
        is_second = segment != first_segment
        ends = is_last and stop == last_key
        if count < len(passes):
            passes[count, TOKEN], passes[count, TOKEN_END] = token, token_end
            passes[count, ROW], passes[count, SLOT] = row, slot
            passes[count, FIRST_KEY], passes[count, LAST_KEY] = min(max(key, first_key), stop), stop
            passes[count, IS_SECOND], passes[count, IS_LAST] = is_second, ends
            passes[count, IS_FIRST] = (is_first and key == first_key) or (is_second and key % SEGMENT == 0)
            passes[count, ENDS_SEGMENT] = is_second and (ends or stop % SEGMENT == 0)
        count += 1
        key = stop
    return count


@kernel()
def _first_key(first_visible: Any, token: Any, token_end: Any, covered: Any) -> Any:
    """First key that any of these tokens sees, at least `covered`."""
    key = int64(first_visible[token])
    for other in range(token + 1, token_end):
        key = min(key, int64(first_visible[other]))
    return max(key, covered)


@kernel()
def _fill(
    passes: Any,
    rectangles: Any,
    cu_seqlens_q: Any,
    positions: Any,
    first_visible: Any,
    low: Any,
    high: Any,
    most: Any,
    min_shared_tokens: Any,
) -> Any:
    """Fill the table; returns the number of passes, which may be larger than the table, and the number of slots."""
    num_rows = len(cu_seqlens_q) - 1
    begin, end, covered = np.empty(num_rows, np.int64), np.empty(num_rows, np.int64), np.zeros(num_rows, np.int64)
    first_segment, slots = np.full(num_rows, -1, np.int64), np.zeros(num_rows, np.int64)
    count, num_slots = int64(0), int64(1)
    for row in range(num_rows):
        begin[row] = min(max(low, int64(cu_seqlens_q[row])), high)
        end[row] = max(min(high, int64(cu_seqlens_q[row + 1])), low)
        num_slots = max(num_slots, min(most, end[row] - begin[row]))
    for index in range(len(rectangles)):
        row, bottom = int64(rectangles[index, 0]), int64(rectangles[index, 1])
        stop = int64(rectangles[index, 3]) // BLOCK * BLOCK
        if bottom - row < 2:
            continue
        while row < bottom:
            last = row  # rows [row, last) have few tokens and the same keys left
            while last < bottom and end[last] - begin[last] <= most // 2 and covered[last] == covered[row]:
                last += 1
            if last == row:
                row += 1
                continue
            first, beyond = begin[row], end[last - 1]
            if beyond - first >= min_shared_tokens:
                key = _first_key(first_visible, first, beyond, covered[row])
                shared = stop  # the block with a token's own key is left to its row, whose last pass writes the result
                for member in range(row, last):
                    if begin[member] < end[member]:
                        shared = min(shared, int64(positions[begin[member]]) // BLOCK * BLOCK)
                if key < shared:
                    is_first = first_segment[row] < 0
                    if is_first:
                        for member in range(row, last):
                            first_segment[member], slots[member] = key // SEGMENT, num_slots
                            num_slots += end[member] - begin[member]
                    for token in range(first, beyond, most):
                        slot, token_end = slots[row] + token - first, min(token + most, beyond)
                        segment = first_segment[row]
                        count = _put(
                            passes,
                            count,
                            token,
                            token_end,
                            row,
                            slot,
                            covered[row],
                            key,
                            shared,
                            segment,
                            is_first,
                            False,
                        )
                    for member in range(row, last):
                        covered[member] = shared
            row = last
    for row in range(num_rows):
        is_first = first_segment[row] < 0
        for token in range(begin[row], end[row], most):
            token_end = min(token + most, end[row])
            key, stop = _first_key(first_visible, token, token_end, covered[row]), int64(positions[token_end - 1]) + 1
            slot = int64(0) if is_first else slots[row] + token - begin[row]
            segment = key // SEGMENT if is_first else first_segment[row]
            done = covered[row]
            count = _put(passes, count, token, token_end, row, slot, done, key, stop, segment, is_first, True)
    return count, num_slots


def plan_passes(
    rectangles: NDArray[np.int32],
    cu_seqlens_q: NDArray[np.int32],
    positions: NDArray[np.int32],
    first_visible: NDArray[np.int32],
    tokens: tuple[int, int],
    group: int,
    min_shared_tokens: int,
) -> tuple[NDArray[np.int32], int]:
    """Passes for a range of tokens: int32 [n, PASS_FIELDS], and the number of slots.

    Args:
        rectangles: the tree, from `tree_rectangles`, in order of position.
        positions, first_visible: int32 [num_tokens]: of a token, and of the first key that it sees.
        group: query heads per KV head.
        min_shared_tokens: a shared prefix of fewer tokens than this gets no pass of its own.
    """
    most = max(1, MAX_LINES // group)
    arguments = rectangles, cu_seqlens_q, positions, first_visible, *tokens, most, min_shared_tokens
    passes = np.empty((2 * len(cu_seqlens_q) + 2 * len(positions) // most, PASS_FIELDS), np.int32)
    count, num_slots = _fill(passes, *arguments)
    if count > len(passes):
        passes = np.empty((count, PASS_FIELDS), np.int32)
        _fill(passes, *arguments)
    return passes[:count], num_slots
