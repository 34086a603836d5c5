"""Launches `prompt_attn` for the tiles of 128 query lines, where it applies and has been chosen (`prompt_choice`).

It applies on processors of compute capability 9 with triton 3.6 or later, to bfloat16 and float16 pools, heads of 64 or 128 elements, pages
of a multiple of 16 tokens, and layers without window, chunks and soft cap. `rect_attn` computes everything else.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan

HEAD_DIMS = (64, 128)
DTYPES = (torch.bfloat16, torch.float16)
PAGE_STEP = 16  # tokens: the smallest box, and a whole number of rows of the swizzle
BOX_WIDTH = 64  # elements


class PromptTile(NamedTuple):
    """Keys of a tile, and how many tiles of keys and of values are in shared memory."""

    block_n: int
    num_stages: int


def prompt_tile(head_dim: int) -> PromptTile:
    """The tile for a head size; it takes 160 KB of shared memory for 128 elements, and 112 KB for 64."""
    return PromptTile(128, 2 if head_dim == 128 else 3)


def box_tokens(page_size: int) -> int:
    """Tokens of a copy: the largest power of two that divides a page and a tile."""
    return min(page_size & -page_size, 128)


def shape_reason(
    head_dim: int, v_head_dim: int, dtype: torch.dtype, kv_dtype: torch.dtype, page_size: int
) -> str | None:
    """Why the kernel does not support a head geometry; None if it does."""
    if head_dim not in HEAD_DIMS or v_head_dim != head_dim:
        return f"head sizes ({head_dim}, {v_head_dim}): expected equal sizes of {' or '.join(map(str, HEAD_DIMS))}"
    if dtype not in DTYPES or kv_dtype != dtype:
        return f"types ({dtype}, {kv_dtype}): expected queries and keys both in bfloat16 or both in float16"
    if page_size % PAGE_STEP:
        return f"page_size = {page_size}: expected a multiple of {PAGE_STEP}"
    return None


def device_reason(device: torch.device) -> str | None:
    """Why the kernel cannot run on a device; None if it can."""
    if device.type != "cuda" or torch.version.hip is not None:
        return f"{device}: not a GPU of NVIDIA"
    capability = torch.cuda.get_device_capability(device)
    if capability[0] != 9:
        return f"compute capability {capability[0]}.{capability[1]}: expected 9.0"
    return triton_reason()


@cache
def triton_reason() -> str | None:
    """Why this version of triton cannot compile the kernel; None if it can."""
    try:
        prompt_kernel()
    except (ImportError, AttributeError) as error:
        return f"triton has no Gluon for sm_90 ({error}); expected 3.6 or later"
    return None


def prompt_kernel() -> Any:
    """The kernel. Loaded on first use, since versions of triton before 3.6 lack its language."""
    from rtlang_kernels.triton.attention.prompt_kernel import prompt_attn

    return prompt_attn


def descriptor(pool: Tensor, page_size: int) -> Any:
    """Describe a pool to the tensor memory accelerator: [slots, heads * size] in boxes."""
    from triton.experimental.gluon.language import NVMMASharedLayout
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    layout = NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    rows = pool.flatten(1)
    return TensorDescriptor(rows, list(rows.shape), list(rows.stride()), [box_tokens(page_size), BOX_WIDTH], layout)


def launch(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    plan: AttentionPlan,
    variant: Any,
    scale: float,
    sinks: Tensor | None,
    out: Tensor,
    lse: Tensor,
    partial_out: Tensor,
    partial_lse: Tensor,
) -> None:
    """Compute the items of the widest class of a schedule (`paged_attention.Variant`)."""
    tile = prompt_tile(plan.head_dim)
    prompt_kernel()[(variant.class_sizes[-1] * plan.num_kv_heads,)](
        q,
        descriptor(k_pool, plan.page_size),
        descriptor(v_pool, plan.page_size),
        out,
        lse,
        partial_out,
        partial_lse,
        lse if sinks is None else sinks,
        variant.items,
        variant.header,
        variant.page_table,
        variant.positions,
        q.stride(0),
        float(scale),
        NUM_KV_HEADS=plan.num_kv_heads,
        GROUP=plan.num_q_heads // plan.num_kv_heads,
        HEAD_DIM=plan.head_dim,
        PAGE_SIZE=plan.page_size,
        BOX=box_tokens(plan.page_size),
        BLOCK_N=tile.block_n,
        STAGES=tile.num_stages,
        HAS_SINKS=sinks is not None,
        num_warps=4,
        enable_fp_fusion=True,
    )
