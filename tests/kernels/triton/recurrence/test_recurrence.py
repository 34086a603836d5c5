"""GPU recurrent layers against float64, in the interpreter, or natively with RTLANG_TEST_DEVICE=cuda."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.triton.recurrence import recurrence
from tests.support.kernels.attention_cases import relative_error, use_backend
from tests.support.kernels.gpu import DEVICE, TOLERANCE

NUM_SLOTS = 8


@dataclass(frozen=True)
class Rows:
    """Tokens of each row, the slot that it continues (-1: none) and its marks."""

    lengths: tuple[int, ...]
    sources: tuple[int, ...]
    marks: tuple[tuple[tuple[int, int], ...], ...]

    def plan(self) -> StatePlan:
        return StatePlan.of(np.cumsum([0, *self.lengths]).astype(np.int32), self.sources, self.marks, DEVICE)


DECODE = Rows((1, 1, 2), (3, -1, 0), (((1, 3),), ((1, 1),), ((1, 0),)))
# Checkpoints, one of them in the row's source; the start of a sequence; a fork that ends with drafts; another fork of that state.
MIXED = Rows((4, 1, 5, 1), (2, -1, 0, 0), (((1, 2), (2, 5), (4, 6)), ((1, 1),), ((2, 3),), ()))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several programs per row, of which the last is not full, and several blocks of tokens."""
    monkeypatch.setattr(recurrence, "STATE_ELEMENTS", 64)
    monkeypatch.setattr(recurrence, "SCAN_ELEMENTS", 64)
    monkeypatch.setattr(recurrence, "CONV_TILES", {True: (2, 8), False: (4, 8)})


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(DEVICE)


def stepwise(
    rows: Rows, states: Tensor, advance: Callable[[Tensor, int], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Outputs and states in float64, token by token. `advance` takes a state and a token, and returns its output and the next state."""
    before, after = states.double(), states.double()
    outputs, token = [], 0
    for length, source, marks in zip(rows.lengths, rows.sources, rows.marks, strict=True):
        state = torch.zeros_like(before[0]) if source < 0 else before[source]
        slots = dict(marks)
        for end in range(1, length + 1):
            output, state = advance(state, token)
            outputs.append(output)
            token += 1
            if end in slots:
                after[slots[end]] = state
    return torch.stack(outputs), after


def agree(rows: Rows, out: Tensor, states: Tensor, before: Tensor, want: tuple[Tensor, Tensor]) -> None:
    assert relative_error(out, want[0]) < TOLERANCE[out.dtype]
    assert relative_error(states, want[1]) < TOLERANCE[states.dtype]
    unmarked = sorted(set(range(NUM_SLOTS)) - {slot for marks in rows.marks for _, slot in marks})
    assert torch.equal(states[unmarked], before[unmarked])


@pytest.mark.parametrize("rows", [DECODE, MIXED], ids=["decode", "mixed"])
@pytest.mark.parametrize(
    ("dtype", "width", "activation", "has_bias"),
    [
        (torch.bfloat16, 4, "silu", False),
        (torch.float32, 3, None, True),
        (torch.float16, 2, "swish", True),
    ],
)
def test_causal_conv(rows: Rows, dtype: torch.dtype, width: int, activation: str | None, has_bias: bool) -> None:
    channels, num_tokens = 12, sum(rows.lengths)
    x = normal(num_tokens, channels + 8, dtype=dtype)[:, 4:-4]  # a part of a fused projection
    weight, bias = normal(channels, width, dtype=dtype, seed=1), normal(channels, dtype=dtype, seed=2)
    states = normal(NUM_SLOTS, channels, width - 1, dtype=dtype, seed=3)
    before = states.clone()

    def advance(state: Tensor, token: int) -> tuple[Tensor, Tensor]:
        window = torch.cat([state, x[token].double()[:, None]], 1)
        total = (window * weight.double()).sum(1) + (bias.double() if has_bias else 0)
        return total / (1 + torch.exp(-total)) if activation else total, window[:, 1:]

    with use_backend("triton"):
        out = ops.causal_conv(x, weight, bias if has_bias else None, states, rows.plan(), activation=activation)
    want = stepwise(rows, before, advance)
    agree(rows, out, states, before, want)
    assert torch.equal(states.double(), want[1])  # inputs are kept as they are


@pytest.mark.parametrize(
    ("rows", "dtype", "is_delta", "has_key_decay", "norm_eps"),
    [
        (MIXED, torch.bfloat16, True, False, 1e-6),  # gated delta rule
        (DECODE, torch.float32, True, True, 1e-6),  # Kimi's delta attention
        (MIXED, torch.float32, False, False, None),  # Mamba-2
        (DECODE, torch.float16, False, True, None),
    ],
)
def test_gated_recurrence(
    rows: Rows, dtype: torch.dtype, is_delta: bool, has_key_decay: bool, norm_eps: float | None
) -> None:
    num_k_heads, num_heads, k_dim, v_dim, num_tokens = 1, 2, 12, 12, sum(rows.lengths)
    fused = normal(num_tokens, 2 * num_k_heads * k_dim + num_heads * v_dim, dtype=dtype)
    parts = fused.split_with_sizes([num_k_heads * k_dim, num_k_heads * k_dim, num_heads * v_dim], 1)
    q, k, v = (part.view(num_tokens, -1, size) for part, size in zip(parts, (k_dim, k_dim, v_dim), strict=True))
    log_decay = -normal(num_tokens, num_heads, *([k_dim] if has_key_decay else []), seed=1).abs()
    beta = normal(num_tokens, num_heads, dtype=dtype, seed=2).sigmoid() if is_delta else None
    states = normal(NUM_SLOTS, num_heads, k_dim, v_dim, seed=3)
    before = states.clone()

    def advance(state: Tensor, token: int) -> tuple[Tensor, Tensor]:
        query, key = (each[token].double().repeat_interleave(num_heads // num_k_heads, 0) for each in (q, k))
        if norm_eps is not None:
            query, key = (each / (each.square().sum(1, keepdim=True) + norm_eps).sqrt() for each in (query, key))
        decay = log_decay[token].double().exp().view(num_heads, -1, 1)
        state = state * decay
        update = v[token].double()
        if is_delta:
            update = update - torch.einsum("hkv,hk->hv", state, key)
        if beta is not None:
            update = update * beta[token].double()[:, None]
        state = state + key[:, :, None] * update[:, None]
        return 0.3 * torch.einsum("hkv,hk->hv", state, query), state

    with use_backend("triton"):
        out = ops.gated_recurrence(
            q, k, v, log_decay, beta, states, rows.plan(), scale=0.3, is_delta=is_delta, norm_eps=norm_eps
        )
    assert out.dtype == dtype
    agree(rows, out, states, before, stepwise(rows, before, advance))


@pytest.mark.parametrize(("rows", "dtype", "has_d"), [(MIXED, torch.bfloat16, True), (DECODE, torch.float32, False)])
def test_selective_scan(rows: Rows, dtype: torch.dtype, has_d: bool) -> None:
    channels, size, num_tokens = 12, 6, sum(rows.lengths)
    x, delta = normal(num_tokens, channels, dtype=dtype), normal(num_tokens, channels, dtype=dtype, seed=1).abs()
    fused = normal(num_tokens, 2 * size + 4, dtype=dtype, seed=2)
    b, c = fused[:, 4 : 4 + size], fused[:, 4 + size :]
    a, d = -normal(channels, size, seed=3).abs(), normal(channels, dtype=dtype, seed=4) if has_d else None
    states = normal(NUM_SLOTS, channels, size, seed=5)
    before = states.clone()

    def advance(state: Tensor, token: int) -> tuple[Tensor, Tensor]:
        step, value = delta[token].double()[:, None], x[token].double()
        state = (step * a.double()).exp() * state + step * value[:, None] * b[token].double()
        return state @ c[token].double() + (0 if d is None else d.double() * value), state

    with use_backend("triton"):
        out = ops.selective_scan(x, delta, a, b, c, d, states, rows.plan())
    agree(rows, out, states, before, stepwise(rows, before, advance))


Step = Callable[[slice, Tensor, StatePlan], Tensor]
"""Computes some tokens of fixed inputs."""


def steps() -> dict[str, tuple[tuple[int, ...], Step]]:
    """Each operation on random inputs, and the shape of its states."""
    x, weight = normal(9, 12), normal(12, 4, seed=1)
    a, narrow = -normal(12, 6, seed=2).abs(), normal(9, 6, seed=3)
    q, v = normal(9, 1, 12, seed=4), normal(9, 1, 12, seed=5)
    decay = -normal(9, 1, seed=6).abs()

    def conv(tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
        return ops.causal_conv(x[tokens], weight, None, states, plan, activation="silu")

    def gated(tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
        each = q[tokens], -q[tokens], v[tokens], decay[tokens], decay[tokens].exp()
        return ops.gated_recurrence(*each, states, plan, is_delta=True, norm_eps=1e-6)

    def scan(tokens: slice, states: Tensor, plan: StatePlan) -> Tensor:
        return ops.selective_scan(x[tokens], x[tokens].abs(), a, narrow[tokens], -narrow[tokens], None, states, plan)

    return {"conv": ((12, 3), conv), "gated": ((1, 12, 12), gated), "scan": ((12, 6), scan)}


@pytest.mark.parametrize("name", ["conv", "gated", "scan"])
def test_bits_do_not_depend_on_how_a_sequence_is_divided(name: str) -> None:
    shape, step = steps()[name]
    whole = torch.zeros(NUM_SLOTS, *shape, device=DEVICE)
    with use_backend("triton"):
        want = step(slice(9), whole, Rows((9,), (-1,), (((2, 4), (9, 0)),)).plan())
        for sizes in ((1, 5, 3), (7, 1, 1)):
            states, found, start = torch.zeros_like(whole), [], 0
            for size in sizes:
                rows = Rows((size,), (0 if start else -1,), (((size, 0),),))
                found.append(step(slice(start, start + size), states, rows.plan()))
                start += size
            assert torch.equal(torch.cat(found), want)
            assert torch.equal(states[0], whole[0])
        replayed = step(slice(2, 9), whole, Rows((7,), (4,), (((7, 1),),)).plan())  # from a checkpoint
    assert torch.equal(replayed, want[2:])
    assert torch.equal(whole[1], whole[0])


def test_wrong_layouts_are_named() -> None:
    x, rows = normal(1, 8), Rows((1,), (0,), (((1, 0),),))
    states = normal(NUM_SLOTS, 3, 8).transpose(1, 2)
    with use_backend("triton"), pytest.raises(ValueError, match="states strides"):
        ops.causal_conv(x, normal(8, 4), None, states, rows.plan())


def launched(monkeypatch: pytest.MonkeyPatch, kernel: str) -> list[tuple[Sequence[Any], dict[str, Any]]]:
    """Arguments of the launches of a kernel, which does not run."""
    found: list[tuple[Sequence[Any], dict[str, Any]]] = []

    class Recorder:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            return lambda *args, **given: found.append((args, given))

    monkeypatch.setattr(recurrence.kernels, kernel, Recorder())
    return found


def test_a_single_token_needs_no_kernel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch takes a transposed column for contiguous, with a stride of 1 between its tokens."""
    found = launched(monkeypatch, "causal_conv")
    with use_backend("triton"):
        for length in (1, 2):
            rows = Rows((length,), (-1,), ((),))
            ops.causal_conv(normal(8, length).T, normal(8, 4), None, normal(NUM_SLOTS, 8, 3), rows.plan())
    (one, _), (two, _) = found
    assert [each for each in one if isinstance(each, int)] == [each for each in two if isinstance(each, int)]
