"""The rows of one attention step as plain arrays: where their KV lies, and how much of it they share.

A step is a batch of rows in depth-first order of the radix tree. The rows below any tree node are then a contiguous range, and two
numbers per row (its KV length and the number of tokens shared with the row before) describe the whole tree. `AttentionPlan` holds these
arrays once per step for all layers; `planning.shared_prefix_tiling` turns them into rectangles (rows x positions) that tile every row
exactly once.

Invariant: a rectangle only holds positions that every token of its rows may attend to. The causal triangle among the tokens of the step
itself is never part of a rectangle.
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
    """The attention of one step, for all layers with this head geometry. Created by `ops.plan_attention`; read-only for callers.

    Attributes:
        page_table: int32 [num_rows, max_pages].
        seq_lens: int32 [num_rows], KV length of each row, including the tokens of this step.
        cu_seqlens_q: int32 [num_rows + 1], start of each row's query tokens.
        shared_lens: int32 [num_rows], leading tokens shared with the row before.
        backend: name of the backend that prepared the plan.
        has_fixed_order: whether the bits of a token must not depend on the other tokens of the step. On a CPU they never do.
        work: data that the backend prepared from these arrays; private to the backend.
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
    has_fixed_order: bool = False
    work: Any = field(default=None, repr=False)

    @property
    def num_rows(self) -> int:
        """Number of rows of the step."""
        return len(self.seq_lens)

    @property
    def num_tokens(self) -> int:
        """Number of query tokens of the step."""
        return int(self.cu_seqlens_q[-1])

    def full_lens(self) -> Int32s:
        """Number of leading positions per row that all of its tokens attend to: int32 [num_rows].

        For a row of one token, this is its whole length; otherwise, it is the length before this step.
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
    has_fixed_order: bool = False,
) -> AttentionPlan:
    """Check the arguments of `ops.plan_attention` and create the plan, without the work of a backend.

    Raises:
        ValueError: an argument is invalid; the message names it.
    """
    pages = np.ascontiguousarray(page_table, dtype=np.int32)
    lengths = np.ascontiguousarray(seq_lens, dtype=np.int32)
    starts = np.ascontiguousarray(cu_seqlens_q, dtype=np.int32)
    shared = np.ascontiguousarray(shared_lens, dtype=np.int32)
    num_rows = len(lengths)
    if pages.ndim != 2 or len(pages) != num_rows:
        raise ValueError(f"page_table has shape {list(pages.shape)}: expected [{num_rows}, max_pages]")
    if starts.shape != (num_rows + 1,) or starts[0] != 0:
        raise ValueError(f"cu_seqlens_q has shape {list(starts.shape)}: expected [{num_rows + 1}], starting with 0")
    if shared.shape != (num_rows,):
        raise ValueError(f"shared_lens has shape {list(shared.shape)}: expected [{num_rows}]")
    if num_q_heads % num_kv_heads:
        raise ValueError(f"num_q_heads = {num_q_heads}: expected a multiple of num_kv_heads ({num_kv_heads})")
    if num_rows:
        q_lens = np.diff(starts)
        if q_lens.min() < 1 or np.any(lengths < q_lens):
            raise ValueError("cu_seqlens_q: expected 1 to seq_lens[row] query tokens in every row")
        if int(lengths.max()) > pages.shape[1] * page_size:
            raise ValueError(
                f"page_table has {pages.shape[1]} pages of {page_size} tokens per row, too few for seq_lens up to {int(lengths.max())}"
            )
        limit = np.minimum(lengths[1:], lengths[:-1])
        if shared[0] or np.any(shared < 0) or np.any(shared % page_size) or np.any(shared[1:] > limit):
            raise ValueError(
                "shared_lens: expected 0 for the first row, then multiples of page_size within the row and the one before it"
            )
    heads = num_q_heads, num_kv_heads, head_dim
    return AttentionPlan(pages, lengths, starts, shared, page_size, *heads, dtype, device, backend, has_fixed_order)
