"""CPU benchmarks: the CPU backend against plain torch, as ratios within one run.

All functions of a line are timed in turn, round by round; the median over the rounds is reported with the spread (interquartile range
over median) of ours, so that a busy machine slows all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from rtlang_kernels import ops
from rtlang_kernels.reference import layer_ops as reference_layers

PAGE_SIZE = 16
HEADS = ((8, 4, 64), (14, 2, 64), (32, 8, 128))
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 1e-2}


@dataclass(frozen=True, slots=True)
class Shape:
    """`rows` decoding sequences: a shared prefix of `shared` tokens (whole pages) and `low` to `own` private tokens each."""

    rows: int
    shared: int
    low: int
    own: int

    def __str__(self) -> str:
        own = f"{self.own}" if self.low == self.own else f"{self.low}..{self.own}"
        return f"{self.rows} x ({self.shared} shared + {own})"


SHAPES = (
    Shape(32, 1024, 64, 64),
    Shape(32, 1024, 32, 32),
    Shape(8, 512, 64, 64),
    Shape(64, 0, 16, 512),
    Shape(1, 0, 1024, 1024),
)


@dataclass(frozen=True, slots=True)
class Attention:
    """Tensors of one decode step and the same KV in the layout of the baselines."""

    q: Tensor
    k_pool: Tensor
    v_pool: Tensor
    plan_args: dict[str, Any]
    slots: Tensor  # [rows, longest], padded with slot 0
    mask: Tensor  # [rows, 1, 1, longest]

    def ours(self) -> Callable[[], Tensor]:
        """The operation under test, already planned."""
        plan = ops.plan_attention(**self.plan_args)
        scale = self.q.shape[2] ** -0.5
        return lambda: ops.paged_attention(self.q, self.k_pool, self.v_pool, plan, scale=scale)

    def contiguous(self, k: Tensor, v: Tensor) -> Tensor:
        """SDPA over contiguous KV [rows, longest, heads, size]."""
        out = scaled_dot_product_attention(
            self.q[:, :, None], k.transpose(1, 2), v.transpose(1, 2), attn_mask=self.mask, enable_gqa=True
        )
        return out[:, :, 0]

    def gathered(self) -> Tensor:
        """SDPA including the gather from pages."""
        return self.contiguous(self.k_pool[self.slots], self.v_pool[self.slots])


def attention(shape: Shape, heads: tuple[int, int, int], dtype: torch.dtype) -> Attention:
    """Random tensors of a shape; pages of the prefix and of each tail are consecutive, as the allocator prefers."""
    rng, (num_q_heads, num_kv_heads, head_dim) = np.random.default_rng(0), heads
    lengths = shape.shared + rng.integers(shape.low, shape.own + 1, shape.rows)
    longest = int(lengths.max())
    table = np.zeros((shape.rows, -(-longest // PAGE_SIZE)), np.int32)
    prefix = shape.shared // PAGE_SIZE
    table[:, :prefix] = np.arange(prefix)
    used = prefix
    for row, length in enumerate(lengths):
        pages = -(-int(length) // PAGE_SIZE)
        table[row, prefix:pages] = np.arange(used, used + pages - prefix)
        used += pages - prefix
    pool = torch.randn(2, used * PAGE_SIZE, num_kv_heads, head_dim).to(dtype)
    positions = np.arange(longest)
    slots = table[:, positions // PAGE_SIZE].astype(np.int64) * PAGE_SIZE + positions % PAGE_SIZE
    is_key = positions < lengths[:, None]
    plan_args = {
        "page_table": table,
        "seq_lens": lengths.astype(np.int32),
        "cu_seqlens_q": np.arange(shape.rows + 1, dtype=np.int32),
        "shared_lens": np.array([0] + [shape.shared] * (shape.rows - 1), np.int32),
        "page_size": PAGE_SIZE,
        "num_q_heads": num_q_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
        "dtype": dtype,
    }
    q = torch.randn(shape.rows, num_q_heads, head_dim).to(dtype)
    mask = torch.from_numpy(is_key)[:, None, None]
    return Attention(q, pool[0], pool[1], plan_args, torch.from_numpy(np.where(is_key, slots, 0)), mask)


def measured(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time functions in turn, round by round: microseconds per call."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 2):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn >= 2:
                times[name].append((time.perf_counter() - start) * 1e6)
    return times


def line(kind: str, label: str, times: dict[str, list[float]], error: float) -> dict[str, Any]:
    """One line of the report: medians, the ratio of every other function to ours, our spread."""
    median = {name: statistics.median(values) for name, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    ratios = {name: value / median["ours"] for name, value in median.items() if name not in ("ours", "plan")}
    return {
        "kind": kind,
        "label": label,
        "us": median,
        "ratio": ratios,
        "spread": (high - low) / median["ours"],
        "error": error,
    }


def attention_lines(rounds: int) -> list[dict[str, Any]]:
    """Decode attention against SDPA, gathered and contiguous."""
    lines = []
    for dtype in (torch.bfloat16, torch.float32):
        for heads in HEADS:
            for shape in SHAPES if heads == HEADS[0] else SHAPES[:1]:
                case = attention(shape, heads, dtype)
                ours = case.ours()
                want = case.gathered().double()
                error = float((ours().double() - want).norm() / want.norm())
                if not error < TOLERANCE[dtype]:
                    raise ArithmeticError(f"attention {shape} {heads} {dtype}: error {error:.1e}")
                k, v = case.k_pool[case.slots], case.v_pool[case.slots]

                def contiguous(case: Attention = case, k: Tensor = k, v: Tensor = v) -> Tensor:
                    return case.contiguous(k, v)

                def replanned(case: Attention = case) -> object:
                    return ops.plan_attention(**case.plan_args)

                functions: dict[str, Callable[[], object]] = {
                    "ours": ours,
                    "plan": replanned,
                    "gather+SDPA": case.gathered,
                    "contiguous SDPA": contiguous,
                }
                label = f"{str(dtype)[6:]} {heads[0]}/{heads[1]}x{heads[2]}  {shape}"
                lines.append(line("attention", label, measured(functions, rounds), error))
    return lines


def sampling_lines(rounds: int) -> list[dict[str, Any]]:
    """Sampling against plain torch: masked fill, softmax, multinomial."""
    lines = []
    for vocab_size in (32_000, 128_256):
        logits = torch.randn(32, vocab_size) * 3
        mask = np.full((1, -(-vocab_size // 32)), 0x5F5F5F5F, np.int32)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:vocab_size].astype(np.bool_)
        forbidden = torch.from_numpy(~bits)
        for temperature in (0.0, 1.0):
            settings: dict[str, Any] = {
                "temperature": np.full(32, temperature, np.float32),
                "top_k": np.zeros(32, np.int32),
                "top_p": np.ones(32, np.float32),
                "min_p": np.zeros(32, np.float32),
                "seeds": np.arange(32, dtype=np.uint64),
                "choices": np.zeros(32, np.int32),
                "steps": np.arange(32),
                "bitmask": mask,
                "mask_rows": np.zeros(32, np.int32),
            }

            def ours(logits: Tensor = logits, settings: dict[str, Any] = settings) -> Tensor:
                return ops.sample(logits, **settings)[0]

            def plain(
                logits: Tensor = logits, forbidden: Tensor = forbidden, greedy: bool = temperature == 0
            ) -> Tensor:
                masked = logits.masked_fill(forbidden, float("-inf"))
                return masked.argmax(-1) if greedy else torch.multinomial(masked.softmax(-1), 1)

            tokens = ours()
            if bool(forbidden[tokens].any()) or (temperature == 0 and not torch.equal(tokens, plain())):
                raise ArithmeticError(f"sampling at {vocab_size}, temperature {temperature}: wrong token")
            label = f"32 x {vocab_size} masked, temperature {temperature:g}"
            lines.append(line("sampling", label, measured({"ours": ours, "torch": plain}, rounds), 0.0))
    return lines


def layer_lines(rounds: int) -> list[dict[str, Any]]:
    """Fused layer operations against the same in torch operators."""
    lines = []
    for dtype in (torch.bfloat16, torch.float32):
        x, weight, gate_up = torch.randn(32, 512).to(dtype), torch.randn(512).to(dtype), torch.randn(32, 3072).to(dtype)
        pairs: dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor]]] = {
            "rms norm 32 x 512": (
                partial(ops.add_rms_norm, x, None, weight, 1e-5),
                partial(reference_layers.add_rms_norm, x, None, weight, 1e-5),
            ),
            "silu and mul 32 x 1536": (
                partial(ops.silu_and_mul, gate_up),
                partial(reference_layers.silu_and_mul, gate_up),
            ),
        }
        for label, (ours, plain) in pairs.items():
            want = plain().double()
            error = float((ours().double() - want).norm() / want.norm())
            if not error < TOLERANCE[dtype]:
                raise ArithmeticError(f"{label} {dtype}: error {error:.1e}")
            times = measured({"ours": ours, "torch": plain}, rounds)
            lines.append(line("layers", f"{str(dtype)[6:]} {label}", times, error))
    return lines
