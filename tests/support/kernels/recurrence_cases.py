"""Random rows with states for the recurrent operations, and their results in float64 by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan

TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-3}


@dataclass(frozen=True)
class Rows:
    """The rows of a step: number of tokens, source and marks of each."""

    lengths: list[int]
    sources: list[int]
    marks: list[list[tuple[int, int]]]
    num_slots: int

    @property
    def starts(self) -> list[int]:
        """First token of each row, and the number of all tokens."""
        return [0, *np.cumsum(self.lengths).tolist()]

    def plan(self) -> StatePlan:
        """The plan that the operations take."""
        return StatePlan.of(np.array(self.starts, np.int32), self.sources, self.marks)

    def written(self) -> list[int]:
        """Slots that the step writes."""
        return [slot for own in self.marks for _, slot in own]


def random_rows(rng: np.random.Generator, num_rows: int, longest: int) -> Rows:
    """Rows that begin a sequence, continue their own slot, or fork a slot that several rows read; with marks anywhere."""
    num_slots = 4 * num_rows + 2
    free = rng.permutation(num_slots).tolist()
    shared = free.pop()
    lengths, sources, marks = [], [], []
    for _ in range(num_rows):
        length = int(rng.integers(1, longest + 1))
        own = free.pop()
        source = [NO_SLOT, own, shared][int(rng.integers(3))]
        ends = sorted(rng.choice(np.arange(1, length + 1), size=min(length, int(rng.integers(0, 4))), replace=False))
        slots = [free.pop() for _ in ends[1:]] + [own]
        lengths.append(length)
        sources.append(source)
        marks.append([(int(end), slot) for end, slot in zip(ends, slots, strict=False)])
    return Rows(lengths, sources, marks, num_slots)


def random_states(rows: Rows, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """States [num_slots, *shape]; NaN in slots that no row reads."""
    states = torch.full((rows.num_slots, *shape), float("nan"))
    for slot in {source for source in rows.sources if source != NO_SLOT}:
        states[slot] = torch.randn(shape, generator=generator)
    return states.to(dtype)


@dataclass
class Case:
    """One call: the operation, its tensors before `states`, and the options after the plan."""

    operation: str
    tensors: list[Any]
    states: Tensor
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, plan: StatePlan, states: Tensor, tokens: slice = slice(None)) -> Tensor:
        """Call the operation on some of the tokens."""
        per_token = PER_TOKEN[self.operation]
        tensors = [each[tokens] if each is not None and i in per_token else each for i, each in enumerate(self.tensors)]
        operation: Callable[..., Tensor] = getattr(ops, self.operation)
        return operation(*tensors, states, plan, **self.options)

    def exact(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Output and states after the step, in float64."""
        step = STEPS[self.operation]
        before, outputs = self.states.double(), []
        after = before.clone()
        tensors = [None if each is None else each.double() for each in self.tensors]
        for row, (first, last) in enumerate(zip(rows.starts, rows.starts[1:], strict=False)):
            source, marks = rows.sources[row], dict(rows.marks[row])
            state = torch.zeros_like(before[0]) if source == NO_SLOT else before[source].clone()
            for token in range(first, last):
                state, out = step(state, token, *tensors, **self.options)
                outputs.append(out)
                if token + 1 - first in marks:
                    after[marks[token + 1 - first]] = state
        return torch.stack(outputs), after


def check(case: Case, rows: Rows, states: Tensor | None = None) -> None:
    """Compare an operation with float64: its output, the states that it writes, and that it writes nothing else.

    Args:
        states: memory for the states of the case, of any strides; by default contiguous.
    """
    states = torch.empty_like(case.states) if states is None else states
    states.copy_(case.states)
    out = case.run(rows.plan(), states)
    want, want_states = case.exact(rows)
    assert out.dtype == case.tensors[2 if case.operation == "gated_recurrence" else 0].dtype
    assert out.shape == want.shape
    assert out.is_contiguous()
    assert error(out, want) < TOLERANCE[out.dtype]
    written = rows.written()
    if written:
        assert error(states[written], want_states[written]) < (1e-5 if states.dtype == torch.float32 else 4e-3)
    others = [slot for slot in range(rows.num_slots) if slot not in written]
    assert torch.equal(states[others].nan_to_num(7.0), case.states[others].nan_to_num(7.0))


def check_cuts(case: Case, rng: np.random.Generator, num_tokens: int) -> None:
    """One sequence in one row, and cut into rows of several steps: equal bits of all outputs and of the states between them."""
    num_slots = len(case.states)
    whole_states, cut_states = torch.zeros_like(case.states), torch.zeros_like(case.states)
    size = max(1, math.ceil(num_tokens / (num_slots - 1)))
    ends = list(range(size, num_tokens, size))
    whole = Rows([num_tokens], [NO_SLOT], [[(end, slot) for slot, end in enumerate(ends)]], num_slots)
    out = case.run(whole.plan(), whole_states)
    source, parts = NO_SLOT, []
    for slot, (first, last) in enumerate(zip([0, *ends], [*ends, num_tokens], strict=True)):
        length, tail = last - first, int(rng.integers(1, num_tokens))
        tokens = torch.cat([torch.arange(first, last), torch.arange(tail)])
        # Another sequence, of the first tokens, in the same step; before or after this one.
        order = [0, 1] if rng.random() < 0.5 else [1, 0]
        if order[0]:
            tokens = tokens.roll(tail)
        both = [length, tail], [source, NO_SLOT], [[(length, slot)] if last < num_tokens else [], []]
        step = Rows(*([each[i] for i in order] for each in both), num_slots)  # type: ignore[arg-type]
        found = case.run(step.plan(), cut_states, tokens)  # type: ignore[arg-type]
        parts.append(found[tail:] if order[0] else found[:length])
        assert torch.equal(found[:tail] if order[0] else found[length:], out[:tail])
        source = slot
    assert torch.equal(torch.cat(parts), out)
    assert torch.equal(whole_states, cut_states)


def conv_case(
    rows: Rows,
    num_channels: int,
    width: int,
    dtype: torch.dtype,
    *,
    has_bias: bool = True,
    activation: str | None = "silu",
    is_strided: bool = False,
    seed: int = 0,
) -> Case:
    """A causal convolution."""
    generator = torch.Generator().manual_seed(seed)
    num_tokens = rows.starts[-1]
    wide = torch.randn(num_tokens, num_channels + 5, generator=generator).to(dtype)
    x = wide[:, 3 : 3 + num_channels] if is_strided else wide[:, :num_channels].contiguous()
    weight = torch.randn(num_channels, width, generator=generator).to(dtype)
    bias = torch.randn(num_channels, generator=generator).to(dtype) if has_bias else None
    states = random_states(rows, (num_channels, width - 1), dtype, generator)
    return Case("causal_conv", [x, weight, bias], states, {"activation": activation})


def recurrence_case(
    rows: Rows,
    heads: tuple[int, int],
    dims: tuple[int, int],
    dtype: torch.dtype,
    *,
    is_delta: bool = True,
    is_keyed: bool = False,
    has_beta: bool = True,
    norm_eps: float | None = 1e-6,
    scale: float | None = None,
    seed: int = 0,
) -> Case:
    """A gated recurrence; heads of k and v, and sizes of both. The three inputs lie in one tensor, as a fused projection leaves them."""
    generator = torch.Generator().manual_seed(seed)
    (num_k_heads, num_v_heads), (k_dim, v_dim), num_tokens = heads, dims, rows.starts[-1]
    sizes = [num_k_heads * k_dim, num_k_heads * k_dim, num_v_heads * v_dim]
    fused = torch.randn(num_tokens, sum(sizes), generator=generator).to(dtype)
    q, k, v = fused.split(sizes, dim=1)
    if norm_eps is None:
        k.div_(k_dim**0.5)  # a delta rule needs keys of length one, or its state grows
    decay_shape = (num_tokens, num_v_heads, k_dim) if is_keyed else (num_tokens, num_v_heads)
    log_decay = -torch.rand(decay_shape, generator=generator) * 2
    log_decay.view(-1)[::11] = -120.0  # forgets everything
    beta = torch.rand(num_tokens, num_v_heads, generator=generator).to(dtype) if has_beta else None
    states = random_states(rows, (num_v_heads, k_dim, v_dim), torch.float32, generator)
    tensors = [
        q.unflatten(1, (num_k_heads, k_dim)),
        k.unflatten(1, (num_k_heads, k_dim)),
        v.unflatten(1, (num_v_heads, v_dim)),
        log_decay,
        beta,
    ]
    options = {"scale": k_dim**-0.5 if scale is None else scale, "is_delta": is_delta, "norm_eps": norm_eps}
    return Case("gated_recurrence", tensors, states, options)


def scan_case(
    rows: Rows, num_channels: int, state_size: int, dtype: torch.dtype, *, has_d: bool = True, seed: int = 0
) -> Case:
    """A scan of Mamba."""
    generator = torch.Generator().manual_seed(seed)
    num_tokens = rows.starts[-1]
    x = torch.randn(num_tokens, num_channels, generator=generator).to(dtype)
    delta = torch.nn.functional.softplus(torch.randn(num_tokens, num_channels, generator=generator)).to(dtype)
    a = -torch.arange(1, state_size + 1).float() * (0.5 + torch.rand(num_channels, 1, generator=generator))
    both = torch.randn(num_tokens, 3 + 2 * state_size, generator=generator).to(dtype)
    b, c = both[:, 3:].split(state_size, dim=1)
    d = torch.randn(num_channels, generator=generator) if has_d else None
    states = random_states(rows, (num_channels, state_size), torch.float32, generator)
    return Case("selective_scan", [x, delta, a, b, c, d], states)


def _conv_step(
    state: Tensor, token: int, x: Tensor, weight: Tensor, bias: Tensor | None, *, activation: str | None
) -> tuple[Tensor, Tensor]:
    window = torch.cat([state, x[token][:, None]], dim=1)
    total = torch.einsum("cw,cw->c", window, weight) + (0 if bias is None else bias)
    return window[:, 1:], total / (1 + torch.exp(-total)) if activation else total


def _recurrence_step(
    state: Tensor,
    token: int,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor | None,
    *,
    scale: float,
    is_delta: bool,
    norm_eps: float | None,
) -> tuple[Tensor, Tensor]:
    states, outputs = [], []
    for head in range(v.shape[1]):
        own = head * k.shape[1] // v.shape[1]
        query, key, value = q[token, own], k[token, own], v[token, head]
        if norm_eps is not None:
            query, key = (each / torch.sqrt((each @ each) + norm_eps) for each in (query, key))
        decayed = torch.exp(log_decay[token, head]).reshape(-1, 1) * state[head]
        update = value - key @ decayed if is_delta else value
        if beta is not None:
            update = beta[token, head] * update
        states.append(decayed + torch.outer(key, update))
        outputs.append(scale * (query @ states[-1]))
    return torch.stack(states), torch.stack(outputs)


def _scan_step(
    state: Tensor, token: int, x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None
) -> tuple[Tensor, Tensor]:
    step = delta[token]
    state = torch.exp(step[:, None] * a) * state + torch.outer(step * x[token], b[token])
    return state, state @ c[token] + (0 if d is None else d * x[token])


def error(found: Tensor, want: Tensor) -> float:
    """Frobenius norm of the difference over that of the expected result."""
    return float((found.double() - want.double()).norm() / want.double().norm())


STEPS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "causal_conv": _conv_step,
    "gated_recurrence": _recurrence_step,
    "selective_scan": _scan_step,
}
PER_TOKEN = {"causal_conv": {0}, "gated_recurrence": {0, 1, 2, 3, 4}, "selective_scan": {0, 1, 3, 4}}
"""Tensors with a line for each token, by their place among the arguments."""
