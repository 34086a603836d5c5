"""Tiling of a step's attention: rectangles of shared positions for dense calls, private segments for the rest.

`tree_rectangles` finds every node of the prefix tree (a range of rows that share a range of positions) in one stack pass over the rows.
`is_tile_worthwhile` selects the rectangles for which one dense call is cheaper than letting every row read the keys itself.
`assign_segments` lists, for every token, the dense calls that hold part of its result and the remaining segments of positions. Calls and
segments tile the visible positions of a token exactly once, no matter which rectangles are selected.

Source: Abouelhoda et al. 2004 (intervals of a longest-common-prefix array in one stack pass).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.host.numba_jit import kernel

# Columns of a table of rectangles, int32: rows [ROW, ROW_END) x positions [START, STOP); IS_CAUSAL 1 marks one row's own tokens.
ROW, ROW_END, START, STOP, IS_CAUSAL = range(5)

# A dense call costs about 40 us before its first key, and each score costs a third of the private path or less: 1 against 5 ns at
# head size 64 in bfloat16, 2 against 6 in float32 (rtlang_kernels_bench). It needs a few query lines to be efficient.
MIN_CALL_WORK = 800_000  # query heads x tokens x keys x head size
MIN_CALL_LINES = 6  # tokens x query heads per KV head


@kernel(inline=True)
def _put(rectangle: Any, row: Any, row_end: Any, start: Any, stop: Any, is_causal: Any) -> None:
    rectangle[0], rectangle[1], rectangle[2], rectangle[3], rectangle[4] = row, row_end, start, stop, is_causal


@kernel()
def _tree_rectangles(full_lens: Any, shared_lens: Any, seq_lens: Any, cu_seqlens_q: Any) -> Any:
    """All rectangles of the tree: int32 [n, 5]. Leaves with their row, inner nodes with all their rows."""
    num_rows = len(full_lens)
    table = np.empty((4 * num_rows + 4, 5), np.int32)
    depth = np.empty(num_rows + 1, np.int32)
    begin = np.empty(num_rows + 1, np.int32)
    size, count = 0, 0
    below = np.int32(0)  # tokens that row - 1 shares with the row before it
    for row in range(1, num_rows + 1):
        shared = np.int32(0)
        if row < num_rows:
            shared = min(shared_lens[row], full_lens[row], full_lens[row - 1])
        start = max(below, shared)
        last = row - 1
        if start < full_lens[last]:
            _put(table[count], last, row, start, full_lens[last], 0)
            count += 1
        if full_lens[last] < seq_lens[last]:
            _put(table[count], last, row, full_lens[last], seq_lens[last], 1)
            count += 1
        low = last
        while size > 0 and depth[size - 1] > shared:
            size -= 1
            low = begin[size]
            parent = max(shared, depth[size - 1] if size > 0 else np.int32(0))
            _put(table[count], low, row, parent, depth[size], 0)
            count += 1
        if shared > 0 and (size == 0 or depth[size - 1] < shared):
            depth[size], begin[size] = shared, low
            size += 1
        below = shared
    return table[:count]


def tree_rectangles(plan: AttentionPlan) -> NDArray[np.int32]:
    """Rectangles that tile the positions visible to each row: int32 [n, 5], ordered by START."""
    table: NDArray[np.int32] = _tree_rectangles(plan.full_lens(), plan.shared_lens, plan.seq_lens, plan.cu_seqlens_q)
    return table[np.argsort(table[:, START], kind="stable")]


def is_tile_worthwhile(plan: AttentionPlan, table: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each rectangle is cheaper as one dense call: bool [n]."""
    tokens = (plan.cu_seqlens_q[table[:, ROW_END]] - plan.cu_seqlens_q[table[:, ROW]]).astype(np.int64)
    keys = (table[:, STOP] - table[:, START]).astype(np.int64)
    work = tokens * keys * (plan.num_q_heads * plan.head_dim) >> table[:, IS_CAUSAL]
    lines = tokens * (plan.num_q_heads // plan.num_kv_heads)
    worth: NDArray[np.bool_] = (work >= MIN_CALL_WORK) & (lines >= MIN_CALL_LINES) & (keys > 0)
    return worth


def first_visible(
    positions: NDArray[np.int32], sliding_window: int | None, chunk_size: int | None
) -> NDArray[np.int32]:
    """First visible position of each token: int32 [num_tokens]."""
    first = np.zeros_like(positions)
    if sliding_window is not None:
        first = np.maximum(first, positions - (sliding_window - 1))
    if chunk_size is not None:
        first = np.maximum(first, positions // chunk_size * chunk_size)
    return first.astype(np.int32)


def clip_to_visible(plan: AttentionPlan, table: NDArray[np.int32], first: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove positions that some tokens of a rectangle cannot see. Causal rectangles stay whole or become empty."""
    clipped = table.copy()
    for rectangle in clipped:
        low, high = plan.cu_seqlens_q[rectangle[ROW]], plan.cu_seqlens_q[rectangle[ROW_END]]
        bound = int(first[low:high].max())
        if bound > rectangle[START]:
            bound = (bound + plan.page_size - 1) // plan.page_size * plan.page_size
            rectangle[START] = rectangle[STOP] if rectangle[IS_CAUSAL] else min(bound, rectangle[STOP])
    return clipped


@kernel()
def assign_segments(table: Any, cu_seqlens_q: Any, positions: Any, first: Any) -> Any:
    """Assign the work of each token: its share of the dense calls for `table` (ordered by START), and its private segments.

    Returns int32 arrays: token_row [T], segment_start [T + 1], segments [n, 2], partial_start [T + 1], partial_call [m], and the
    number of private keys before each token [T + 1] (int64).
    """
    num_tokens, num_calls = len(positions), len(table)
    token_row = np.empty(num_tokens, np.int32)
    segment_start = np.zeros(num_tokens + 1, np.int32)
    partial_start = np.zeros(num_tokens + 1, np.int32)
    keys_before = np.zeros(num_tokens + 1, np.int64)
    mine = np.empty(num_calls, np.int32)
    deepest = 0
    for row in range(len(cu_seqlens_q) - 1):
        count = 0
        for call in range(num_calls):
            if table[call, 0] <= row and row < table[call, 1]:
                count += 1
        deepest = max(deepest, count)
    segments = np.empty((num_tokens * (deepest + 1), 2), np.int32)
    partial_call = np.empty(num_tokens * deepest, np.int32)
    num_segments, num_partials = 0, 0
    for row in range(len(cu_seqlens_q) - 1):
        count = 0
        for call in range(num_calls):
            if table[call, 0] <= row and row < table[call, 1]:
                mine[count] = call
                count += 1
        for token in range(cu_seqlens_q[row], cu_seqlens_q[row + 1]):
            token_row[token] = row
            cursor, end = first[token], positions[token] + np.int32(1)
            keys = 0
            for i in range(count):
                call = mine[i]
                if table[call, 2] > cursor:
                    segments[num_segments, 0], segments[num_segments, 1] = cursor, table[call, 2]
                    keys += table[call, 2] - cursor
                    num_segments += 1
                cursor = min(table[call, 3], end)
                partial_call[num_partials] = call
                num_partials += 1
            if cursor < end:
                segments[num_segments, 0], segments[num_segments, 1] = cursor, end
                keys += end - cursor
                num_segments += 1
            segment_start[token + 1] = num_segments
            partial_start[token + 1] = num_partials
            keys_before[token + 1] = keys_before[token] + keys
    return token_row, segment_start, segments[:num_segments], partial_start, partial_call[:num_partials], keys_before
