"""Paged attention of the CPU backend against torch's flash kernel: decode, prefill, and rows below a shared prefix, in bfloat16.

One run measures them in turns, with pages in random order and many layers one after the other, so that KV comes from memory. The flash
kernel reads contiguous keys and values, which the pages would first have to be gathered into. Where matrix tiles are used, the same in
vectors is a third. With one thread, times are CPU seconds of
the calling thread, so that other load of the machine counts as little as possible.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.cpu.attention.attention import variant_of
from rtlang_kernels.cpu.attention.attention_kernel import RELEASE, geometry
from rtlang_kernels.cpu.attention.attention_layout import form_of

PAGE_SIZE = 16
HEADS = ((14, 2, 64), (8, 2, 64), (32, 8, 64), (8, 8, 64), (32, 8, 128), (4, 2, 64))
CONTEXTS, ROWS = (512, 1088), (1, 8, 32)
_BYTES = 128 << 20  # KV of all layers of a case, more than the caches hold
_MAX_LAYERS = 200
_MAX_SCORES = 4e7  # of a round, after which fewer layers are taken
_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of `num_tokens` new tokens each, the last ones of `context` tokens, of which the first `shared` are the same for all rows."""

    rows: int
    num_tokens: int
    context: int
    shared: int = 0

    def __str__(self) -> str:
        if self.num_tokens > 1:
            return f"prefill {self.context}"
        return f"decode {self.rows} x {self.context}" + (f", {self.shared} shared" if self.shared else "")

    @property
    def scores(self) -> int:
        """Keys that all tokens see together."""
        before = self.context - self.num_tokens
        return self.rows * (self.num_tokens * before + self.num_tokens * (self.num_tokens + 1) // 2)

    @property
    def keys(self) -> int:
        """Distinct keys."""
        return self.shared + self.rows * (self.context - self.shared)


def attention_lines(rounds: int, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """One line per head geometry and case.

    Raises:
        ArithmeticError: a result differs from the flash kernel's by more than bfloat16 explains.
    """
    for heads in HEADS[:1] if is_quick else HEADS:
        for case in cases(is_quick):
            yield _line(heads, case, max(3, rounds // 20))


def cases(is_quick: bool) -> Iterator[Case]:
    """All cases of a head geometry."""
    for context in CONTEXTS[:1] if is_quick else CONTEXTS:
        for rows in ROWS:
            yield Case(rows, 1, context)
    for length in (512,) if is_quick else (512, 1024):
        yield Case(1, length, length)
    yield Case(32, 1, 1088, 1024)


def _line(heads: tuple[int, int, int], case: Case, rounds: int) -> dict[str, Any]:
    """Measure one case."""
    num_q_heads, num_kv_heads, head_dim = heads
    group, scale = num_q_heads // num_kv_heads, head_dim**-0.5
    table, num_slots, plan_args = pages(heads, case)
    num_bytes = case.keys * num_kv_heads * head_dim * 4
    by_scores = int(_MAX_SCORES / (case.scores * num_q_heads))
    num_layers = max(1, min(_MAX_LAYERS, _BYTES // num_bytes, by_scores))
    pools = [torch.randn(2, num_slots, num_kv_heads, head_dim).bfloat16() for _ in range(num_layers)]
    q = torch.randn(case.rows * case.num_tokens, num_q_heads, head_dim).bfloat16()
    plan = ops.plan_attention(**plan_args)
    positions = np.arange(case.context)
    slots = torch.from_numpy(table[:, positions // PAGE_SIZE].astype(np.int64) * PAGE_SIZE + positions % PAGE_SIZE)
    contiguous = [pool[:, slots].transpose(2, 3).contiguous() for pool in pools]  # [2, rows, KV heads, keys, size]
    lines = q.view(case.rows, case.num_tokens, num_kv_heads, group, head_dim)

    def ours(plan: AttentionPlan = plan) -> Tensor:
        for pool in pools:
            out = ops.paged_attention(q, pool[0], pool[1], plan, scale=scale)
        return out

    def flash() -> Tensor:
        for k, v in contiguous:
            if case.num_tokens == 1:  # the heads of a group as queries of one head
                packed = lines[:, 0]
                out = torch.nn.functional.scaled_dot_product_attention(packed, k, v, scale=scale)
            else:
                packed = lines.permute(0, 2, 3, 1, 4).reshape(case.rows, num_q_heads, case.num_tokens, head_dim)
                out = torch.nn.functional.scaled_dot_product_attention(
                    packed, k, v, is_causal=True, scale=scale, enable_gqa=True
                )
        return out if case.num_tokens == 1 else out.transpose(1, 2)

    want = flash().reshape(q.shape).double()
    error = float((ours().double() - want).norm() / want.norm())
    if not error < _TOLERANCE:
        raise ArithmeticError(f"attention {heads} {case}: error {error:.1e}")
    functions = {"ours": ours, "flash": flash}
    if variant_of(plan, None, None).layout[RELEASE]:
        in_vectors = ops.plan_attention(**plan_args)
        variant_of(in_vectors, None, None).layout[:] = geometry(form_of(1, head_dim, head_dim), num_kv_heads, group)
        functions["vectors"] = partial(ours, in_vectors)
        ours(in_vectors)
    times = measured(functions, rounds)
    median = {name: statistics.median(values) / num_layers for name, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    return {
        "kind": "attention",
        "label": f"{num_q_heads}/{num_kv_heads}x{head_dim} {case}",
        "us": {name: seconds * 1e6 for name, seconds in median.items()},
        "ratio": {
            "contiguous flash" if name == "flash" else name: seconds / median["ours"]
            for name, seconds in median.items()
            if name != "ours"
        },
        "ns_score": median["ours"] * 1e9 / (case.scores * num_q_heads),
        "kv_gb_s": num_bytes / median["ours"] / 1e9,
        "spread": (high - low) / num_layers / median["ours"],
        "error": error,
    }


def pages(heads: tuple[int, int, int], case: Case) -> tuple[np.ndarray[Any, np.dtype[np.int32]], int, dict[str, Any]]:
    """Page table in random order, number of slots, and arguments of the plan."""
    num_shared, own = case.shared // PAGE_SIZE, -(-case.context // PAGE_SIZE) - case.shared // PAGE_SIZE
    ids = np.random.default_rng(0).permutation(num_shared + case.rows * own).astype(np.int32)
    shared = np.broadcast_to(ids[:num_shared], (case.rows, num_shared))
    table = np.concatenate((shared, ids[num_shared:].reshape(case.rows, own)), axis=1)
    return (
        table,
        len(ids) * PAGE_SIZE,
        {
            "page_table": table,
            "seq_lens": np.full(case.rows, case.context, np.int32),
            "cu_seqlens_q": np.arange(case.rows + 1, dtype=np.int32) * case.num_tokens,
            "shared_lens": np.array([0] + [case.shared] * (case.rows - 1), np.int32),
            "page_size": PAGE_SIZE,
            "num_q_heads": heads[0],
            "num_kv_heads": heads[1],
            "head_dim": heads[2],
            "dtype": torch.bfloat16,
        },
    )


def measured(functions: dict[str, Callable[[], Tensor]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, in turns."""
    clock = time.thread_time if torch.get_num_threads() == 1 and os.name != "nt" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
    return times
