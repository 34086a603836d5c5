"""The work of a recurrent step: items of a row and a part of its channels, which threads take one after the other, longest rows first.

Items write different parts of states and outputs, so results do not depend on which thread takes which.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.cpu.codegen.linear_vectors import LINE
from rtlang_kernels.cpu.threads import run_chunks

SPLIT_NS = 150_000  # less work than this runs on one thread, as in attention
_INT32S = types.Array(types.int32, 1, "C")
PLAN_TYPES = (_INT32S,) * 6
"""numba types of `plan_arrays`."""


@cache
def _in_order(num_rows: int) -> NDArray[np.int32]:
    return np.arange(num_rows, dtype=np.int32)


def plan_arrays(plan: StatePlan) -> tuple[NDArray[np.int32], ...]:
    """The order of the rows of a plan, longest first, and its arrays."""
    num_rows = len(plan.sources)
    if plan.num_tokens == num_rows:
        order = _in_order(num_rows)
    else:
        order = np.argsort(-np.diff(plan.cu_seqlens), kind="stable").astype(np.int32)
    return order, plan.cu_seqlens, plan.sources, plan.cu_marks, plan.mark_ends, plan.mark_slots


def share_items(
    kernel: Callable[..., None], arguments: tuple[object, ...], num_items: int, cost_ns: float, scratch_bytes: int
) -> None:
    """Run a kernel over all items, on several threads if there is enough work.

    Args:
        kernel: takes the arguments, then the number of items, the address of the number of items taken, and working memory of its own,
            which holds anything and starts at a cache line.
    """
    num_threads = min(torch.get_num_threads(), num_items) if cost_ns >= SPLIT_NS else 1
    size = -(-scratch_bytes // LINE) * LINE
    memory = np.empty(num_threads * size + 2 * LINE, np.uint8)
    taken = -(-memory.ctypes.data // LINE) * LINE
    memory[: 2 * LINE] = 0
    run_chunks(kernel, [(*arguments, num_items, taken, taken + LINE + i * size) for i in range(num_threads)])
