"""Reference paged attention: row by row, in float32. Contracts are in `ops.py`.

Sharing between rows is ignored; every other backend is tested against this one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.reference.kv_cache import floats_of


def prepare(plan: AttentionPlan) -> None:
    """Do nothing: the reference needs no preparation."""


def paged_attention(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    plan: AttentionPlan,
    scale: float,
    sliding_window: int | None,
    chunk_size: int | None,
    soft_cap: float | None,
    sinks: Tensor | None,
    out: Tensor,
    lse: Tensor,
) -> None:
    """See `ops.paged_attention_with_lse`; writes `out` and `lse`."""
    group = plan.num_q_heads // plan.num_kv_heads
    for row in range(plan.num_rows):
        length, start, stop = int(plan.seq_lens[row]), int(plan.cu_seqlens_q[row]), int(plan.cu_seqlens_q[row + 1])
        slots = torch.from_numpy(plan.slots(row, 0, length)).to(q.device)
        keys = floats_of(k_pool, slots).repeat_interleave(group, dim=1)  # [length, Hq, D]
        values = floats_of(v_pool, slots).repeat_interleave(group, dim=1)  # [length, Hq, Dv]
        scores = torch.einsum("qhd,khd->hqk", q[start:stop].float(), keys) * scale  # [Hq, q_len, length]
        if soft_cap is not None:
            scores = soft_cap * torch.tanh(scores / soft_cap)
        key_position = torch.arange(length, device=q.device)
        q_position = torch.arange(length - (stop - start), length, device=q.device)[:, None]
        visible = key_position <= q_position
        if sliding_window is not None:
            visible &= key_position > q_position - sliding_window
        if chunk_size is not None:
            visible &= key_position // chunk_size == q_position // chunk_size
        scores = scores.masked_fill(~visible, float("-inf"))
        total = torch.logsumexp(scores, dim=-1)  # [Hq, q_len]
        if sinks is not None:
            total = torch.logaddexp(total, sinks.float()[:, None].expand_as(total))
        weights = torch.exp(scores - total[..., None])
        out[start:stop] = torch.einsum("hqk,khd->qhd", weights, values).to(out.dtype)
        lse[start:stop] = total.mT


def merge_states(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """See `ops.merge_states`."""
    lse = torch.logaddexp(lse_a, lse_b)  # -inf where both are
    weight_a = torch.where(lse_a == -torch.inf, 0.0, torch.exp(lse_a - lse))[..., None]
    weight_b = torch.where(lse_b == -torch.inf, 0.0, torch.exp(lse_b - lse))[..., None]
    part_a = torch.where(weight_a == 0, 0.0, weight_a * out_a.float())
    part_b = torch.where(weight_b == 0, 0.0, weight_b * out_b.float())
    return (part_a + part_b).to(out_a.dtype), lse
