"""FlashAttention-3 for rows with many new tokens, if the package `fa3-fwd` is installed and was measured to be faster (`prompt_choice`).

Version 0.0.3 is built without paged keys and values, so the keys and values of such rows are gathered first, which takes about
2 % of the time of a prompt of 8,192 tokens. Rows with fewer new tokens stay with the other kernels. The last bits of a token depend on the
kernel, and so on the chunks of its prompt.

Source: the interface of fa3-fwd 0.0.3 and its build flags.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan, checked_plan
from rtlang_kernels.host.transfer import copy_to_device

INTERFACE, CONFIG = "fa3_fwd_interface", "fa3_fwd_config"


class FlashBuild(NamedTuple):
    """An installed build: its function for sequences of several lengths, and the head sizes and types that it supports."""

    function: Any
    head_dims: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...]


@cache
def find_build() -> FlashBuild | str:
    """The installed build, or why there is none."""
    try:
        interface, config = import_module(INTERFACE), import_module(CONFIG)
    except (ImportError, OSError) as error:  # OSError: a library of another version of torch
        return f"fa3-fwd cannot be loaded ({error})"
    flags = config.CONFIG["build_flags"]
    if flags["FLASHATTENTION_DISABLE_VARLEN"]:
        return "fa3-fwd was built without sequences of several lengths"
    dims = tuple(dim for dim in (64, 96, 128, 192, 256) if not flags[f"FLASHATTENTION_DISABLE_HDIM{dim}"])
    types = (torch.bfloat16,) if flags["FLASHATTENTION_DISABLE_FP16"] else (torch.bfloat16, torch.float16)
    return FlashBuild(interface.flash_attn_varlen_func, dims, types)


def flash_reason(head_dim: int, v_head_dim: int, dtype: torch.dtype, kv_dtype: torch.dtype) -> str | None:
    """Why FlashAttention-3 does not compute a head geometry; None if it does."""
    build = find_build()
    if isinstance(build, str):
        return build
    if v_head_dim != head_dim or head_dim not in build.head_dims:
        return f"head sizes ({head_dim}, {v_head_dim}): fa3-fwd was built for {build.head_dims}"
    if dtype not in build.dtypes or kv_dtype != dtype:
        return f"types ({dtype}, {kv_dtype}): fa3-fwd was built for {build.dtypes}"
    return None


class FlashRows(NamedTuple):
    """The rows of a step with many new tokens, and the plan of the others.

    Attributes:
        tokens: int64 [n], their tokens in the step.
        cu_seqlens_q, cu_seqlens_k: int32 [rows + 1], start of each row's tokens and keys.
        longest_q, longest_k: most new tokens and keys of a row.
        slots: int64 [keys], where the keys of each row are.
        rest, rest_tokens: plan of the other rows, and int64 [m], their tokens; None if there are none.
    """

    tokens: Tensor
    cu_seqlens_q: Tensor
    cu_seqlens_k: Tensor
    longest_q: int
    longest_k: int
    slots: Tensor
    rest: AttentionPlan | None
    rest_tokens: Tensor


def flash_rows(plan: AttentionPlan, fewest: int) -> FlashRows | None:
    """Divide the rows of a plan by whether they have at least `fewest` new tokens; None if none has. The rest is not prepared."""
    counts = np.diff(plan.cu_seqlens_q)
    chosen = counts >= fewest
    if not chosen.any():
        return None
    lengths = plan.seq_lens[chosen]
    cu_q, cu_k = (np.concatenate(([0], np.cumsum(each))).astype(np.int32) for each in (counts[chosen], lengths))
    rows = np.repeat(np.flatnonzero(chosen), lengths)
    positions = np.arange(cu_k[-1]) - np.repeat(cu_k[:-1], lengths)
    slots = plan.page_table[rows, positions // plan.page_size].astype(np.int64) * plan.page_size
    slots += positions % plan.page_size
    of_chosen = np.repeat(chosen, counts)
    arrays = (np.flatnonzero(of_chosen), cu_q, cu_k, slots, np.flatnonzero(~of_chosen))
    tokens, there_q, there_k, there_slots, rest_tokens = copy_to_device(plan.device, arrays)
    rest = None
    if not chosen.all():
        rest = checked_plan(
            plan.page_table[~chosen],
            plan.seq_lens[~chosen],
            np.concatenate(([0], np.cumsum(counts[~chosen]))).astype(np.int32),
            _shared_with_kept(plan.shared_lens, ~chosen),
            page_size=plan.page_size,
            num_q_heads=plan.num_q_heads,
            num_kv_heads=plan.num_kv_heads,
            head_dim=plan.head_dim,
            dtype=plan.dtype,
            device=plan.device,
            backend=plan.backend,
        )
    longest = int(counts[chosen].max()), int(lengths.max())
    return FlashRows(tokens, there_q, there_k, *longest, there_slots, rest, rest_tokens)


def _shared_with_kept(shared_lens: Any, kept: Any) -> Any:
    """Tokens that each kept row shares with the kept row before it: the least along the rows between them."""
    found: list[int] = []
    least = 0
    for shared, is_kept in zip(shared_lens.tolist(), kept.tolist(), strict=True):
        least = min(least, shared) if found else 0
        if is_kept:
            found.append(least)
            least = 1 << 30
    return np.array(found, np.int32)


def attend(rows: FlashRows, q: Tensor, k_pool: Tensor, v_pool: Tensor, scale: float, out: Tensor, lse: Tensor) -> None:
    """Attention of the rows with many new tokens; writes their lines of `out` and `lse`.

    Raises:
        RuntimeError: the package is not installed.
    """
    build = find_build()
    if isinstance(build, str):
        raise RuntimeError(build)
    found, found_lse = build.function(
        q[rows.tokens],
        k_pool[rows.slots],
        v_pool[rows.slots],
        rows.cu_seqlens_q,
        rows.cu_seqlens_k,
        rows.longest_q,
        rows.longest_k,
        softmax_scale=scale,
        causal=True,
        return_attn_probs=True,
    )
    out[rows.tokens] = found
    lse[rows.tokens] = found_lse.transpose(0, 1)  # [heads, tokens]
