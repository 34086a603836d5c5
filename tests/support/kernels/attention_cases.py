"""Random attention steps over a paged pool, and their results in float64 by brute force."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.kv_lines import line_bytes, scale_offset


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Make `ops` choose the named backend for CPU tensors."""
    before = os.environ.pop("RTLANG_KERNELS", None)
    if name in ("reference", "triton"):
        os.environ["RTLANG_KERNELS"] = name
    try:
        yield
    finally:
        os.environ.pop("RTLANG_KERNELS", None)
        if before is not None:
            os.environ["RTLANG_KERNELS"] = before


@dataclass(frozen=True)
class Tree:
    """The rows of a step: lengths, new tokens, and leading tokens shared with the row before."""

    seq_lens: list[int]
    q_lens: list[int]
    shared_lens: list[int]
    page_size: int

    def page_table(self, seed: int, in_order: bool) -> tuple[NDArray[np.int32], int]:
        """Pages of every row, shared ones equal, and the number of pages of the pool; free pages lie between."""
        rng = np.random.default_rng(seed)
        width = max(-(-length // self.page_size) for length in self.seq_lens)
        table = np.zeros((len(self.seq_lens), width), np.int32)
        need = sum(-(-length // self.page_size) for length in self.seq_lens)
        ids = np.arange(need + 3) if in_order else rng.permutation(need + 3)
        used = 0
        for row, (length, shared) in enumerate(zip(self.seq_lens, self.shared_lens, strict=True)):
            kept, pages = shared // self.page_size, -(-length // self.page_size)
            if kept:
                table[row, :kept] = table[row - 1, :kept]
            table[row, kept:pages] = ids[used : used + pages - kept]
            used += pages - kept
        return table, need + 3


def random_tree(rng: np.random.Generator, num_rows: int, longest: int, page_size: int, extend: bool) -> Tree:
    """Rows that share random prefixes; with `extend`, some compute several tokens, even tokens that the next row shares."""
    seq_lens: list[int] = []
    q_lens: list[int] = []
    shared_lens: list[int] = []
    for row in range(num_rows):
        length = int(rng.integers(1, longest + 1))
        shared = 0
        if row and rng.random() < 0.75:
            shared = min(int(rng.integers(0, seq_lens[-1] + 1)), length) // page_size * page_size
        q_len = int(rng.integers(1, length + 1)) if extend and rng.random() < 0.5 else 1
        seq_lens.append(length)
        q_lens.append(q_len)
        shared_lens.append(shared)
    return Tree(seq_lens, q_lens, shared_lens, page_size)


@dataclass(frozen=True)
class Step:
    """Tensors of one step. Slots that no row uses hold NaN."""

    tree: Tree
    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    plan_args: dict[str, Any]

    def plan(self, name: str) -> AttentionPlan:
        """The step's plan for one backend."""
        with use_backend(name):
            return ops.plan_attention(**self.plan_args)


def make_step(
    tree: Tree,
    *,
    num_kv_heads: int,
    group: int,
    head_dim: int,
    v_head_dim: int | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    in_order: bool = False,
) -> Step:
    """Random tensors for the rows of a tree."""
    generator = torch.Generator().manual_seed(seed)
    table, num_pages = tree.page_table(seed, in_order)
    v_head_dim = v_head_dim or head_dim
    num_tokens, num_slots = sum(tree.q_lens), num_pages * tree.page_size
    q = torch.randn(num_tokens, num_kv_heads * group, head_dim, generator=generator).to(dtype)
    k = torch.randn(num_slots, num_kv_heads, head_dim, generator=generator).to(dtype)
    v = torch.randn(num_slots, num_kv_heads, v_head_dim, generator=generator).to(dtype)
    named = torch.zeros(num_slots, dtype=torch.bool)
    for row, length in enumerate(tree.seq_lens):
        positions = np.arange(length)
        named[table[row, positions // tree.page_size] * tree.page_size + positions % tree.page_size] = True
    k[~named], v[~named] = float("nan"), float("nan")
    plan_args = {
        "page_table": table,
        "seq_lens": np.array(tree.seq_lens, np.int32),
        "cu_seqlens_q": np.concatenate(([0], np.cumsum(tree.q_lens))).astype(np.int32),
        "shared_lens": np.array(tree.shared_lens, np.int32),
        "page_size": tree.page_size,
        "num_q_heads": num_kv_heads * group,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
        "dtype": dtype,
    }
    return Step(tree, q, k, v, plan_args)


def latent_step(
    tree: Tree, *, group: int, rank: int, rope_dim: int, dtype: torch.dtype = torch.float32, seed: int = 0
) -> Step:
    """A step of one KV head whose values are the first `rank` elements of its keys, as in latent attention."""
    step = make_step(tree, num_kv_heads=1, group=group, head_dim=rank + rope_dim, v_head_dim=1, dtype=dtype, seed=seed)
    return replace(step, v_pool=step.k_pool[..., :rank])


def int8_pool(num_slots: int, num_heads: int, size: int) -> Tensor:
    """A pool of int8 whose lines hold anything."""
    generator = torch.Generator().manual_seed(size)
    shape = num_slots, num_heads, line_bytes(size)
    return torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8)[..., :size]


def lines_of(pool: Tensor) -> Tensor:
    """The whole lines of a pool of int8, or the pool."""
    return (
        pool
        if pool.dtype != torch.int8
        else pool.as_strided((*pool.shape[:2], line_bytes(pool.shape[2])), pool.stride())
    )


def numbers_of(pool: Tensor) -> Tensor:
    """The numbers of a pool in float64."""
    if pool.dtype != torch.int8:
        return pool.double()
    first = scale_offset(pool.shape[2])
    halves = lines_of(pool)[..., first : first + 2].contiguous().view(torch.uint8).int()
    scales = (halves[..., 1] << 24 | halves[..., 0] << 16).view(torch.float32)
    return pool.double() * scales.double()[..., None]


def in_int8(step: Step) -> Step:
    """The same step with its keys and values in pools of int8, written by the default backend. Unused slots hold anything."""
    k_pool, v_pool = (int8_pool(*pool.shape) for pool in (step.k_pool, step.v_pool))
    for pool in (k_pool, v_pool):
        lines_of(pool)[:, :, -2:] = -1  # NaN
    slots = (~step.k_pool.isnan().any(-1).any(-1)).nonzero()[:, 0]
    ops.write_kv(step.k_pool[slots], step.v_pool[slots], k_pool, v_pool, slots)
    return replace(step, k_pool=k_pool, v_pool=v_pool)


def exact(
    step: Step,
    *,
    scale: float,
    sliding_window: int | None = None,
    chunk_size: int | None = None,
    soft_cap: float | None = None,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output and lse in float64, one token at a time."""
    num_tokens, num_heads, _ = step.q.shape
    out = torch.zeros(num_tokens, num_heads, step.v_pool.shape[2], dtype=torch.float64)
    lse = torch.zeros(num_tokens, num_heads, dtype=torch.float64)
    pools = numbers_of(step.k_pool), numbers_of(step.v_pool)
    table, group, token = step.plan_args["page_table"], num_heads // step.k_pool.shape[1], 0
    for row, (length, q_len) in enumerate(zip(step.tree.seq_lens, step.tree.q_lens, strict=True)):
        for position in range(length - q_len, length):
            seen = [
                p
                for p in range(position + 1)
                if (sliding_window is None or p > position - sliding_window)
                and (chunk_size is None or p // chunk_size == position // chunk_size)
            ]
            size = step.tree.page_size
            slots = torch.tensor([int(table[row, p // size]) * size + p % size for p in seen])
            kv_heads = torch.arange(num_heads) // group
            keys, values = (pool[slots][:, kv_heads] for pool in pools)  # [n, Hq, size]
            scores = (keys * step.q[token].double()).sum(-1).T * scale  # [Hq, n]
            if soft_cap is not None:
                scores = soft_cap * torch.tanh(scores / soft_cap)
            if sinks is not None:
                scores = torch.cat((scores, sinks.double()[:, None]), dim=1)
            weights = torch.softmax(scores, dim=1)[:, : len(seen)]
            out[token] = (weights.T[:, :, None] * values).sum(0)
            lse[token] = torch.logsumexp(scores, dim=1)
            token += 1
    return out, lse


def relative_error(got: Tensor, want: Tensor) -> float:
    """Frobenius norm of the difference over that of the expected result."""
    return float((got.double() - want).norm() / want.norm())
