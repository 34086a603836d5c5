"""GPU benchmarks of attention and sampling: every case is checked against the reference, then timed.

The floor of a case is the larger of its bytes over the measured copy rate and its operations over the measured matrix rate. Host time to
prepare a step is a separate figure. The timing function is a parameter, so tests run all of this in the Triton interpreter; `device_run`
has the real one, the order of the cases and the ceilings. `baselines` are the other implementations timed on the same tensors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import torch

from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.sampler_settings import SamplerSettings, checked_settings
from rtlang_kernels.dispatch import REFERENCE
from rtlang_kernels_bench import baselines
from rtlang_kernels_bench.device_cases import (
    FLEX_SHAPE,
    TOLERANCE,
    AttentionCase,
    Ceilings,
    Heads,
    Measure,
    TreeShape,
    attention_case,
    attention_label,
    num_sets,
)
from rtlang_kernels_bench.table import Line


def attention_error(case: AttentionCase, plan: AttentionPlan) -> float:
    """Relative error against the reference on the same tensors, in float32 throughout."""
    pool, scale = case.pools[0], case.q.shape[2] ** -0.5
    got = ops.paged_attention(case.q, pool[0], pool[1], plan, scale=scale)
    want = torch.empty(got.shape, dtype=torch.float32, device=got.device)
    lse = torch.empty(got.shape[:2], dtype=torch.float32, device=got.device)
    REFERENCE.paged_attention(case.q, pool[0], pool[1], plan, scale, None, None, None, None, want, lse)
    return float((got.float() - want).norm() / want.norm())


def attention_floor_us(case: AttentionCase, ceilings: Ceilings) -> float:
    """Least time to read each key and value once, or to multiply them with every query that sees them."""
    num_tokens, num_q_heads, head_dim = case.q.shape
    k_pool, v_pool = case.pools[0]
    is_latent, v_head_dim = k_pool.data_ptr() == v_pool.data_ptr(), v_pool.shape[2]
    num_kv_heads, item, new = case.plan_args["num_kv_heads"], case.q.element_size(), case.shape.new_tokens
    seen = new * (int(case.shape.row_lengths.sum()) - case.shape.nodes[-1] * (new - 1) / 2)  # keys over all tokens
    sizes = head_dim + v_head_dim
    num_bytes = case.shape.unique_tokens * num_kv_heads * (head_dim if is_latent else sizes) * item
    num_bytes += num_tokens * num_q_heads * sizes * item
    floor: float = 1e6 * max(num_bytes / ceilings.bytes_per_s, 2 * num_q_heads * sizes * seen / ceilings.flops_per_s)
    return floor


def host_us(function: Callable[[], object], repeats: int = 20) -> float:
    """Median wall time of a host function."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def attention_lines(
    shapes: Sequence[TreeShape],
    heads: Heads,
    dtype: torch.dtype,
    device: torch.device,
    ceilings: Ceilings,
    measure: Measure,
    rank: int | None = None,
) -> Iterator[Line]:
    """Check and time attention over some shapes. `rank`: of latent attention.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    for shape in shapes:
        case = attention_case(shape, heads, dtype, device, ceilings.l2_bytes, rank)
        plan = case.plan()
        error = attention_error(case, plan)
        label = attention_label(shape, heads, dtype)
        if not error < TOLERANCE[dtype]:
            raise ArithmeticError(f"attention {label}: error {error:.1e}")
        ours, spread = measure(case.calls(plan))
        peers = {}
        if len(shape.nodes) > 1:
            peers["unshared"] = measure(case.calls(case.unshared()))[0]
        if rank is None and dtype == torch.bfloat16:
            peers["fixed order"] = measure(case.calls(case.fixed()))[0]
        if shape.new_tokens == 1 and shape.shortest is None and shape.nodes[-1] * sum(shape.tokens) <= 1 << 20:
            peers |= baselines.sdpa(case, measure)
        if rank is None and shape == FLEX_SHAPE and dtype == torch.bfloat16:
            peers |= baselines.flex(case, measure, TOLERANCE[dtype])
        if rank is None and shape.new_tokens == 1 and shape.shortest is None and dtype != torch.float32:
            peers |= baselines.flashinfer(case, measure, TOLERANCE[dtype])
        if rank is None and (shape.new_tokens > 1 or len(shape.nodes) > 1):
            peers |= baselines.prompt_kernels(case, measure, TOLERANCE[dtype])
        group = "extend" if shape.new_tokens > 1 else "trees" if len(shape.nodes) > 1 else "decode"
        floor = attention_floor_us(case, ceilings)
        yield Line(group, label, ours, spread, host_us(case.prepare), floor, peers, error)


FILTERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("", {}),
    (" top-k 50 top-p 0.9", {"top_k": 50, "top_p": 0.9}),
    (" top-p 0.9", {"top_p": 0.9}),
)
CHECKED_ROWS = 8  # of a batch: the reference computes all noise of a row in numpy


def sampling_cases(shapes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, bool, str, dict[str, float]]]:
    """First arguments of `sampling_line` for (rows, vocabulary): with and without mask and filters."""
    for rows, vocab_size in shapes:
        for has_mask in (False, True):
            for name, filters in FILTERS:
                yield rows, vocab_size, has_mask, name, filters


def sampling_line(
    rows: int,
    vocab_size: int,
    has_mask: bool,
    name: str,
    filters: dict[str, float],
    dtype: torch.dtype,
    device: torch.device,
    ceilings: Ceilings,
    measure: Measure,
) -> Line:
    """Check and time sampling.

    Raises:
        ArithmeticError: a token differs from the reference.
    """
    from rtlang_kernels.triton.sampling import sampler

    generator = torch.Generator(device).manual_seed(0)
    num_bytes = rows * vocab_size * dtype.itemsize
    copies = num_sets(num_bytes, ceilings.l2_bytes)
    shape = (rows, vocab_size)
    sets = [torch.randn(shape, generator=generator, device=device).mul_(3).to(dtype) for _ in range(copies)]
    masks = np.random.default_rng(0).integers(-(2**31), 2**31, (1, -(-vocab_size // 32))).astype(np.int32)
    full = {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | filters

    def settings_of(count: int) -> SamplerSettings:
        return checked_settings(
            count,
            vocab_size,
            temperature=np.full(count, 0.8),
            top_k=np.full(count, full["top_k"]),
            top_p=np.full(count, full["top_p"]),
            min_p=np.full(count, full["min_p"]),
            seeds=np.arange(count),
            choices=np.zeros(count),
            steps=np.arange(count),
            bitmask=masks if has_mask else None,
            mask_rows=np.zeros(count) if has_mask else None,
        )

    label = f"{str(dtype)[6:]} {rows} x {vocab_size}{' masked' if has_mask else ''}{name}"
    settings, checked = settings_of(rows), min(rows, CHECKED_ROWS)
    staged = sampler.stage(settings, device)
    tokens = sampler.sample_staged(sets[0], staged)[0][:checked].cpu()
    want, _ = REFERENCE.sample(sets[0][:checked].cpu(), settings_of(checked))
    if not torch.equal(tokens, want):
        raise ArithmeticError(f"sampling {label}: {int((tokens != want).sum())} of {checked} tokens differ")
    ours, spread = measure([partial(sampler.sample_staged, logits, staged) for logits in sets])
    floor = 1e6 * (num_bytes + has_mask * rows * vocab_size / 8) / ceilings.bytes_per_s
    peers = {} if name or has_mask else baselines.plain_sampling(sets, 0.8, measure)
    host = host_us(partial(sampler.stage, settings, device))
    return Line("sampling", label, ours, spread, host, floor, peers, 0.0)
