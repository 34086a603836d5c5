"""What one step attends to, as plain arrays: which rows there are, where their KV lies and what they share.

A step is a batch of rows in depth-first order of the radix tree, so the rows below any tree node are a contiguous range and two
numbers per row (its KV length and how much it shares with the row before) describe the whole tree. `AttentionPlan` holds these
arrays once per step for all layers; `cover` turns them into rectangles (rows x positions), which tile every row exactly once.

Must stay true: a rectangle only holds positions that every token of its rows may see; what tokens of the step see of each other
(their causal triangle) is never part of a rectangle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Int32s = NDArray[np.int32]


@dataclass(slots=True)
class AttentionPlan:
    """One step's attention, for every layer with this head geometry. Made by `ops.plan_attention`; read-only for callers.

    Attributes:
        page_table: int32 [num_rows, max_pages].
        seq_lens: int32 [num_rows], KV length of each row, this step's tokens included.
        cu_seqlens_q: int32 [num_rows + 1], where each row's query tokens begin.
        shared_lens: int32 [num_rows], leading tokens shared with the row before.
        work: what the backend prepared from these arrays; its own business.
    """

    page_table: Int32s
    seq_lens: Int32s
    cu_seqlens_q: Int32s
    shared_lens: Int32s
    page_size: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device
    backend: str
    work: Any = field(default=None, repr=False)

    @property
    def num_rows(self) -> int:
        """Rows of the step."""
        return len(self.seq_lens)

    @property
    def num_tokens(self) -> int:
        """Query tokens of the step."""
        return int(self.cu_seqlens_q[-1])

    def full_lens(self) -> Int32s:
        """Per row, how many leading positions every one of its tokens sees: int32 [num_rows].

        That is all of them for a row of one token, else what was there before this step.
        """
        q_lens = np.diff(self.cu_seqlens_q)
        return np.where(q_lens == 1, self.seq_lens, self.seq_lens - q_lens).astype(np.int32)

    def token_positions(self) -> Int32s:
        """Absolute position of every query token: int32 [num_tokens]."""
        ends = np.repeat(self.seq_lens - self.cu_seqlens_q[1:], np.diff(self.cu_seqlens_q))
        return (ends + np.arange(self.num_tokens, dtype=np.int32)).astype(np.int32)

    def slots(self, row: int, start: int, stop: int) -> NDArray[np.int64]:
        """Slots (page_id * page_size + offset) of positions [start, stop) of a row."""
        positions = np.arange(start, stop)
        pages = self.page_table[row, positions // self.page_size].astype(np.int64)
        slots: NDArray[np.int64] = pages * self.page_size + positions % self.page_size
        return slots


def checked_plan(
    page_table: Any,
    seq_lens: Any,
    cu_seqlens_q: Any,
    shared_lens: Any,
    *,
    page_size: int,
    num_q_heads: int,
    num_kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device,
    backend: str,
) -> AttentionPlan:
    """The plan of `ops.plan_attention` without a backend's work; raises ValueError naming the argument that is wrong."""
    pages = np.ascontiguousarray(page_table, dtype=np.int32)
    lengths = np.ascontiguousarray(seq_lens, dtype=np.int32)
    starts = np.ascontiguousarray(cu_seqlens_q, dtype=np.int32)
    shared = np.ascontiguousarray(shared_lens, dtype=np.int32)
    num_rows = len(lengths)
    if pages.ndim != 2 or len(pages) != num_rows:
        raise ValueError(f"page_table has shape {pages.shape}, [{num_rows}, max_pages] is allowed")
    if starts.shape != (num_rows + 1,) or starts[0] != 0:
        raise ValueError(f"cu_seqlens_q must be [{num_rows + 1}] and begin with 0")
    if shared.shape != (num_rows,):
        raise ValueError(f"shared_lens has shape {shared.shape}, [{num_rows}] is allowed")
    if num_q_heads % num_kv_heads:
        raise ValueError(f"num_q_heads {num_q_heads} is not a multiple of num_kv_heads {num_kv_heads}")
    if num_rows:
        q_lens = np.diff(starts)
        if q_lens.min() < 1 or np.any(lengths < q_lens):
            raise ValueError("cu_seqlens_q: every row needs 1 to seq_lens[row] tokens")
        if int(lengths.max()) > pages.shape[1] * page_size:
            raise ValueError(f"page_table has {pages.shape[1]} pages, seq_lens needs more")
        limit = np.minimum(lengths[1:], lengths[:-1])
        if shared[0] or np.any(shared < 0) or np.any(shared % page_size) or np.any(shared[1:] > limit):
            raise ValueError("shared_lens: 0 first, then multiples of page_size that fit both rows")
    return AttentionPlan(
        pages, lengths, starts, shared, page_size, num_q_heads, num_kv_heads, head_dim, dtype, device, backend
    )
