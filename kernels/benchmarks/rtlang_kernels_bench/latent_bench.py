"""Latent attention of the CPU backend over compressed lines against the same over multiplied-out keys and values, in bfloat16.

Both sides include what depends on the way: the projections of heads that queries and results pass, or the product that expands the latents
of new tokens. The shape is that of DeepSeek-V2-Lite: 16 heads of 128 + 64 and 128, latents of 512. Pages lie in random order, and calls
rotate over layers that exceed the caches.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.cpu.attention.head_linear import HeadLinears
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels_bench.attention_bench import Case, measured, pages

NUM_HEADS, NOPE, ROPE, VALUE, RANK = 16, 128, 64, 128, 512
LINE, KEY = RANK + ROPE, NOPE + ROPE
CASES = (
    Case(1, 1, 1024),
    Case(1, 1, 4096),
    Case(8, 1, 4096),
    Case(8, 1, 4096, 3072),
    Case(1, 512, 512),
    Case(1, 512, 4096),
)
_BYTES = 640 << 20  # of multiplied-out keys and values
_MAX_LAYERS = 12
_TOLERANCE = 2e-2  # two ways to round: results differ by twice a bfloat16


def latent_lines(rounds: int, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """One line per case.

    Raises:
        ArithmeticError: the two ways differ by more than bfloat16 explains.
    """
    for case in CASES[:2] if is_quick else CASES:
        yield _line(case, max(3, rounds // 20))


def _line(case: Case, rounds: int) -> dict[str, Any]:
    """Measure one case."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    weight = (drawn(NUM_HEADS, NOPE + VALUE, RANK) * RANK**-0.5).bfloat16()
    to_lines, to_values = HeadLinears(weight[:, :NOPE].mT.contiguous()), HeadLinears(weight[:, NOPE:].contiguous())
    expand = PackedLinear.pack(weight.flatten(0, 1))
    num_slots, arguments = pages((NUM_HEADS, 1, LINE), case)[1:]
    plan = ops.plan_attention(**arguments)
    plain_plan = ops.plan_attention(**arguments | {"num_kv_heads": NUM_HEADS, "head_dim": KEY})
    plain_bytes = num_slots * NUM_HEADS * (KEY + VALUE) * 2
    num_layers = max(1, min(_MAX_LAYERS, _BYTES // plain_bytes))
    pools = [drawn(num_slots, 1, LINE).bfloat16() for _ in range(num_layers)]
    plain_pools = [_multiplied_out(pool, weight) for pool in pools]
    num_tokens = case.rows * case.num_tokens
    q = drawn(num_tokens, NUM_HEADS, KEY).bfloat16()
    new = drawn(num_tokens, RANK).bfloat16()
    scale = KEY**-0.5

    def ours() -> Tensor:
        for pool in pools:
            lines = q.new_empty(num_tokens, NUM_HEADS, LINE)
            to_lines(q[..., :NOPE], lines[..., :RANK])
            lines[..., RANK:] = q[..., NOPE:]
            sums = ops.paged_attention(lines, pool, pool[..., :RANK], plan, scale=scale)
            out = q.new_empty(num_tokens, NUM_HEADS, VALUE)
            to_values(sums, out)
        return out

    def plain() -> Tensor:
        for k, v in plain_pools:
            expand(new)
            out = ops.paged_attention(q, k, v, plain_plan, scale=scale)
        return out

    want = plain().double()
    error = float((ours().double() - want).norm() / want.norm())
    if not error < _TOLERANCE:
        raise ArithmeticError(f"latent attention {case}: error {error:.1e}")
    times = measured({"ours": ours, "multiplied out": plain}, rounds)
    median = {name: statistics.median(values) / num_layers for name, values in times.items()}
    low, _, high = statistics.quantiles(times["ours"], n=4)
    return {
        "kind": "latent",
        "label": f"latent {NUM_HEADS}x{LINE}/{RANK} {case}",
        "us": {name: seconds * 1e6 for name, seconds in median.items()},
        "ratio": {"multiplied out": median["multiplied out"] / median["ours"]},
        "ns_score": median["ours"] * 1e9 / (case.scores * NUM_HEADS),
        "kv_gb_s": case.keys * LINE * 2 / median["ours"] / 1e9,
        "spread": (high - low) / num_layers / median["ours"],
        "error": error,
    }


def _multiplied_out(pool: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values [num_slots, heads, size] of lines [num_slots, 1, LINE]."""
    both = torch.einsum("tr,hor->tho", pool[:, 0, :RANK].float(), weight.float()).bfloat16()
    shared = pool[:, :, RANK:].expand(-1, NUM_HEADS, -1)
    return torch.cat([both[..., :NOPE], shared], -1), both[..., NOPE:].contiguous()
