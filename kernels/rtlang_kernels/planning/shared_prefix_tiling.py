"""The prefix tree of a step as rectangles: ranges of rows that share a range of positions.

`tree_rectangles` finds every node in one stack pass over the rows. The backends decide which of them are worth reading once for all rows:
`attention_passes` on a CPU, `work_items` on a GPU.

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
