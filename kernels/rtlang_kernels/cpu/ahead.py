"""What a first step compiles on a CPU whatever the model, ahead of time: the code is kept on disk, for this and later processes."""

from __future__ import annotations

import numpy as np
import torch

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention import variant_of


def compile_ahead() -> None:
    """Plan the attention of one token and draw another. What depends on the shape of heads is compiled with the model's first step."""
    row, ends = np.zeros((1, 1), dtype=np.int32), np.array([0, 1], dtype=np.int32)
    plan = ops.plan_attention(
        page_table=row,
        seq_lens=ends[1:],
        cu_seqlens_q=ends,
        shared_lens=row[0],
        page_size=16,
        num_q_heads=1,
        num_kv_heads=1,
        head_dim=32,
        dtype=torch.float32,
    )
    variant_of(plan, None, None)
    ops.sample(
        torch.zeros((1, 32)),
        temperature=[1.0],
        top_k=[0],
        top_p=[1.0],
        min_p=[0.0],
        seeds=[0],
        choices=[0],
        steps=[0],
        bitmask=np.full((1, 1), -1, dtype=np.int32),
        mask_rows=row[0],
    )
