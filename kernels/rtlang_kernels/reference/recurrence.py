"""Reference recurrent layers: one token after the other, in float32. Contracts are in `ops.py`.

Exponentials are taken of one token at a time: torch computes the last elements of a tensor, which do not fill a vector, with other bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan

ACTIVATIONS: dict[str | None, Callable[[Tensor], Tensor]] = {
    None: lambda x: x,
    "silu": functional.silu,
    "swish": functional.silu,
}


def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, states: Tensor, plan: StatePlan, activation: str | None
) -> Tensor:
    """See `ops.causal_conv`."""
    width = weight.shape[1]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    written: list[tuple[int, Tensor]] = []
    for row in range(plan.num_rows):
        first, last = int(plan.cu_seqlens[row]), int(plan.cu_seqlens[row + 1])
        source = int(plan.sources[row])
        before = states.new_zeros(states.shape[1:]) if source == NO_SLOT else states[source]  # [C, width - 1]
        inputs = torch.cat([before.float(), x[first:last].float().T], dim=1)  # [C, width - 1 + length]
        lines = inputs.T.contiguous()  # [width - 1 + length, C]
        total = torch.zeros_like(lines[width - 1 :]) if bias is None else bias.float().expand(last - first, -1)
        for tap in range(width):
            total = total + lines[tap : tap + last - first] * weight[:, tap].float()
        for token in range(first, last):
            out[token] = ACTIVATIONS[activation](total[token - first]).to(x.dtype)
        written += [(slot, inputs[:, end : end + width - 1].to(states.dtype)) for end, slot in _marks(plan, row)]
    for slot, state in written:
        states[slot] = state
    return out


def gated_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor | None,
    states: Tensor,
    plan: StatePlan,
    scale: float,
    is_delta: bool,
    norm_eps: float | None,
) -> Tensor:
    """See `ops.gated_recurrence`."""
    group = v.shape[1] // k.shape[1]
    queries, keys, values = q.float(), k.float(), v.float()
    if norm_eps is not None:
        queries, keys = (each * torch.rsqrt(each.square().sum(-1, keepdim=True) + norm_eps) for each in (queries, keys))
    queries, keys = ((each.repeat_interleave(group, dim=1)) for each in (queries * scale, keys))  # [T, Hv, Dk]
    log_decay = (log_decay[..., None] if log_decay.ndim == 2 else log_decay).float().contiguous()  # [T, Hv, 1 or Dk]
    out = torch.empty(v.shape, dtype=torch.float32, device=v.device)
    written: list[tuple[int, Tensor]] = []
    for row in range(plan.num_rows):
        first, last = int(plan.cu_seqlens[row]), int(plan.cu_seqlens[row + 1])
        source, marks = int(plan.sources[row]), dict(_marks(plan, row))
        state = states.new_zeros(states.shape[1:]) if source == NO_SLOT else states[source]  # [Hv, Dk, Dv]
        for token in range(first, last):
            state = state * log_decay[token].exp()[..., None]
            update = values[token]
            if is_delta:
                update = update - (state * keys[token][..., None]).sum(1)
            if beta is not None:
                update = update * beta[token].float()[:, None]
            state = state + keys[token][..., None] * update[:, None]
            out[token] = (state * queries[token][..., None]).sum(1)
            if token + 1 - first in marks:
                written.append((marks[token + 1 - first], state))
    for slot, state in written:
        states[slot] = state
    return out.to(v.dtype)


def selective_scan(
    x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, states: Tensor, plan: StatePlan
) -> Tensor:
    """See `ops.selective_scan`."""
    inputs, steps = x.float(), delta.float()
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    written: list[tuple[int, Tensor]] = []
    for row in range(plan.num_rows):
        first, last = int(plan.cu_seqlens[row]), int(plan.cu_seqlens[row + 1])
        source, marks = int(plan.sources[row]), dict(_marks(plan, row))
        state = states.new_zeros(states.shape[1:]) if source == NO_SLOT else states[source]  # [C, N]
        for token in range(first, last):
            decay = (steps[token][:, None] * a.float()).exp()
            state = state * decay + (steps[token] * inputs[token])[:, None] * b[token].float()
            out[token] = (state * c[token].float()).sum(-1)
            if token + 1 - first in marks:
                written.append((marks[token + 1 - first], state))
    for slot, state in written:
        states[slot] = state
    if d is not None:
        out = out + inputs * d.float()
    return out.to(x.dtype)


def _marks(plan: StatePlan, row: int) -> list[tuple[int, int]]:
    own = slice(int(plan.cu_marks[row]), int(plan.cu_marks[row + 1]))
    return list(zip(plan.mark_ends[own].tolist(), plan.mark_slots[own].tolist(), strict=True))
