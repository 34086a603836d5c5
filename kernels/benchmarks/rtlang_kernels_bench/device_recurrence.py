"""GPU checks and benchmark of recurrent layers.

Each kernel is checked against the reference over forks, checkpoints and drafts, and a divided sequence must have the bits of the whole one.
Decoding is timed beside one step in plain torch, compiled, on states that are gathered and scattered; prompts have no such definition. A
floor counts each state read and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan
from rtlang_kernels.dispatch import REFERENCE, Backend, triton_backend
from rtlang_kernels_bench import baselines
from rtlang_kernels_bench.device_cases import TOLERANCE, Ceilings, Measure, num_sets
from rtlang_kernels_bench.table import Line

NORM_EPS = 1e-6
Operation = Callable[[Backend, slice, Tensor, StatePlan], Tensor]
"""Computes some tokens of fixed inputs, with the states of a layer."""


@dataclass(frozen=True, slots=True)
class Gated:
    """Heads of a layer of `ops.gated_recurrence`."""

    num_k_heads: int
    num_heads: int
    k_dim: int
    v_dim: int
    is_delta: bool = True
    has_key_decay: bool = False


GATED = {
    "qwen3.5": Gated(16, 16, 128, 128),
    "qwen3-next": Gated(16, 32, 128, 128),
    "kimi": Gated(32, 32, 128, 128, has_key_decay=True),
    "olmo-hybrid": Gated(30, 30, 96, 192),
    "mamba-2": Gated(1, 64, 128, 64, is_delta=False),
    "falcon-h1": Gated(1, 32, 256, 64, is_delta=False),
}
CONV = {"qwen3.5": (6144, 4), "lfm2": (2048, 3)}  # channels and width
SCAN = {"falcon-mamba": (8192, 16)}  # channels and size of the state of each
CHECKED_LENGTHS = (70, 1, 5, 1)
TIMED_ROWS = (1, 32, 128)
TIMED_TOKENS = 2048  # of a prompt


def checked(device: torch.device) -> tuple[StatePlan, int]:
    """A plan with checkpoints, the start of a sequence, drafts and two forks of a state, and the number of slots."""
    length = CHECKED_LENGTHS[0]
    marks = [((2, 2), (length // 2 + 1, 5), (length, 6)), ((1, 1),), ((2, 3),), ()]
    return StatePlan.of(np.cumsum([0, *CHECKED_LENGTHS]).astype(np.int32), [2, NO_SLOT, 0, 0], marks, device), 8


def cases() -> list[str]:
    """Names of what is checked."""
    kinds = {"gated": [*GATED], "convolution": [*CONV], "scan": [*SCAN]}
    return [f"{kind} {name}" for kind, names in kinds.items() for name in names]


def operation(name: str, dtype: torch.dtype, num_tokens: int, device: torch.device) -> tuple[Operation, Tensor]:
    """A kernel with random inputs, and the states of one slot."""
    kind, family = name.split(" ")
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(0), device=device)
    if kind == "convolution":
        channels, width = CONV[family]
        x, weight = made(num_tokens, channels).to(dtype), made(channels, width).to(dtype)

        def conv(backend: Backend, tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
            return backend.causal_conv(x[tokens], weight, None, states, plan, "silu")

        return conv, made(channels, width - 1).to(dtype)
    if kind == "scan":
        channels, size = SCAN[family]
        x, delta = made(num_tokens, channels).to(dtype), (made(num_tokens, channels).abs() * 0.1).to(dtype)
        a, d = -made(channels, size).abs(), made(channels).to(dtype)
        b, c = made(num_tokens, 2 * size).to(dtype).split_with_sizes([size, size], 1)

        def scan(backend: Backend, tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
            return backend.selective_scan(x[tokens], delta[tokens], a, b[tokens], c[tokens], d, states, plan)

        return scan, made(channels, size)
    shape = GATED[family]
    q, k = (made(num_tokens, shape.num_k_heads, shape.k_dim).to(dtype) for _ in range(2))
    v = made(num_tokens, shape.num_heads, shape.v_dim).to(dtype)
    decay = -made(num_tokens, shape.num_heads, *([shape.k_dim] if shape.has_key_decay else [])).abs() * 0.1
    beta = made(num_tokens, shape.num_heads).to(dtype).sigmoid() if shape.is_delta else None
    norm_eps, scale = NORM_EPS if shape.is_delta else None, shape.k_dim**-0.5

    def gated(backend: Backend, tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
        vectors = q[tokens], k[tokens], v[tokens], decay[tokens], None if beta is None else beta[tokens]
        return backend.gated_recurrence(*vectors, states, plan, scale, shape.is_delta, norm_eps)

    return gated, made(shape.num_heads, shape.k_dim, shape.v_dim)


def check(name: str, dtype: torch.dtype, device: torch.device) -> float:
    """A kernel against the reference, its bits for a sequence that is divided, and the slots that no row marks.

    Raises:
        ArithmeticError: the error is too large, bits depend on the division, or a slot was written that is no mark.
    """
    plan, num_slots = checked(device)
    compute, state = operation(name, dtype, plan.num_tokens, device)
    before = torch.randn(num_slots, *state.shape, generator=torch.Generator(device).manual_seed(1), device=device)
    before = before.to(state.dtype)
    states, wanted = before.clone(), before.clone()
    every = slice(plan.num_tokens)
    out, want = compute(triton_backend(), every, states, plan), compute(REFERENCE, every, wanted, plan)
    error = max(_below(name, out, want, TOLERANCE[dtype]), _below(name, states, wanted, TOLERANCE[state.dtype]))
    unmarked = sorted(set(range(num_slots)) - set(plan.mark_slots.tolist()))
    if not torch.equal(states[unmarked], before[unmarked]):
        raise ArithmeticError(f"{name}: a slot was written that is no mark")
    divided, start, half = before.clone(), 0, CHECKED_LENGTHS[0] // 2
    for size in (1, half, CHECKED_LENGTHS[0] - half - 1):
        own = StatePlan.of(np.array([0, size], np.int32), [2], [((size, 2),)], device)
        part = compute(triton_backend(), slice(start, start + size), divided, own)
        if not torch.equal(part, out[start : start + size]):
            raise ArithmeticError(f"{name}: tokens from {start} have other bits in a row of their own")
        start += size
    if not torch.equal(divided[2], states[6]):
        raise ArithmeticError(f"{name}: the state of a divided sequence has other bits")
    return error


def _below(name: str, got: Tensor, want: Tensor, limit: float) -> float:
    error = float((got.double() - want.double()).norm() / want.double().norm())
    if not error < limit:
        raise ArithmeticError(f"{name}: error {error:.1e}, less than {limit:.0e} is allowed")
    return error


def timed() -> list[str]:
    """Names of what is timed."""
    return ["gated qwen3.5", "gated qwen3-next", "gated mamba-2", "convolution qwen3.5", "scan falcon-mamba"]


def recurrence_lines(name: str, device: torch.device, ceilings: Ceilings, measure: Measure) -> Iterator[Line]:
    """Check and time decoding steps of several numbers of rows, and a prompt, in bfloat16.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    error = check(name, torch.bfloat16, device)
    for rows, length in (*((rows, 1) for rows in TIMED_ROWS), (1, TIMED_TOKENS)):
        plan = StatePlan.of(
            np.arange(rows + 1, dtype=np.int32) * length, range(rows), [((length, row),) for row in range(rows)], device
        )
        compute, state = operation(name, torch.bfloat16, plan.num_tokens, device)
        num_bytes = 2 * rows * state.nbytes
        sets = [
            torch.zeros(rows, *state.shape, dtype=state.dtype, device=device)
            for _ in range(num_sets(num_bytes, ceilings.l2_bytes))
        ]
        every = slice(plan.num_tokens)
        calls = [partial(compute, triton_backend(), every, states, plan) for states in sets]
        ours, spread = measure(calls)
        outputs = calls[0]()
        floor = (
            1e6 * (num_bytes + 4 * outputs.nbytes) / ceilings.bytes_per_s
        )  # outputs, and about three inputs of their size
        label = f"bfloat16 {name} {rows} x {length}"
        peers = {}
        if length == 1 and name.startswith("gated"):
            step, inputs = plain_step(name.split(" ")[1], rows, device)
            peers = baselines.compiled(step, [(states, *inputs) for states in sets], measure)
        yield Line("recurrence", label, ours, spread, 0.0, floor, peers, error)


def plain_step(
    family: str, rows: int, device: torch.device
) -> tuple[Callable[..., Tensor], tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    """One token of `rows` sequences in plain torch, and its inputs after the states."""
    shape = GATED[family]
    made = partial(torch.randn, generator=torch.Generator(device).manual_seed(0), device=device)
    q, k = (made(rows, shape.num_k_heads, shape.k_dim).bfloat16() for _ in range(2))
    v = made(rows, shape.num_heads, shape.v_dim).bfloat16()
    decay, beta = -made(rows, shape.num_heads).abs(), made(rows, shape.num_heads).sigmoid()
    group = shape.num_heads // shape.num_k_heads

    def step(states: Tensor, q: Tensor, k: Tensor, v: Tensor, decay: Tensor, beta: Tensor) -> Tensor:
        queries, keys = q.float(), k.float()
        if shape.is_delta:
            queries, keys = (
                each * torch.rsqrt(each.square().sum(-1, keepdim=True) + NORM_EPS) for each in (queries, keys)
            )
        queries, keys = (each.repeat_interleave(group, 1) for each in (queries * shape.k_dim**-0.5, keys))
        state = states * decay.exp()[..., None, None]
        update = v.float()
        if shape.is_delta:
            update = (update - (state * keys[..., None]).sum(2)) * beta[..., None]
        state = state + keys[..., None] * update[:, :, None]
        states.copy_(state)
        return (state * queries[..., None]).sum(2).to(v.dtype)

    return step, (q, k, v, decay, beta)
