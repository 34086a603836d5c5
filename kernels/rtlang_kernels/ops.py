"""The public operations and their contracts: shapes, dtypes, layout, what is written in place, errors.

Every operation has one implementation per backend; `dispatch` selects the backend.

Layout. One layer's KV is `k_pool [num_slots, num_kv_heads, head_dim]` and `v_pool [num_slots, num_kv_heads, v_head_dim]`; slot = page_id *
page_size + offset. On a CPU, pools may be int8 with a scale for each head of a token: views into the lines of `contract.kv_lines`. The
query heads of one KV head are adjacent: query head h reads KV head h // (num_q_heads / num_kv_heads). Rows of a step come in depth-first
order of the prefix tree.

Latent attention (MLA) is attention with one KV head whose values are the first v_head_dim elements of its keys: `v_pool` is the view
`k_pool[..., :v_head_dim]`, so a line is stored and read once for all query heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan, checked_plan
from rtlang_kernels.contract.sampler_settings import checked_bitmask, checked_settings
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.dispatch import BACKENDS as BACKENDS
from rtlang_kernels.dispatch import backend_for as backend_for
from rtlang_kernels.dispatch import backend_named as backend_named


def plan_attention(
    *,
    page_table: NDArray[np.int32] | Tensor,
    seq_lens: NDArray[np.int32] | Tensor,
    cu_seqlens_q: NDArray[np.int32] | Tensor,
    shared_lens: NDArray[np.int32] | Tensor,
    page_size: int,
    num_q_heads: int,
    num_kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    has_fixed_order: bool = False,
) -> AttentionPlan:
    """Prepare the attention of one step. All layers with the same head geometry share the plan.

    Args (int32 arrays or CPU tensors; held by reference, so they must not change before the last layer of the step):
        page_table: [num_rows, max_pages]; position t of a row lies in page page_table[row, t // page_size].
        seq_lens: [num_rows], KV length of each row, including the tokens of this step.
        cu_seqlens_q: [num_rows + 1]; row b has the query tokens cu_seqlens_q[b] to cu_seqlens_q[b + 1] - 1, the last ones of its sequence.
        shared_lens: [num_rows], number of leading tokens whose pages row b shares with row b - 1: a multiple of page_size, 0 for the first
            row.
        dtype: of q and the pool.
        has_fixed_order: give a token the same bits whatever else the step has, also on a GPU, where that is slower.
    Raises:
        ValueError: an array is inconsistent; names it.
    """
    device = torch.device(device)
    backend = backend_for(device, dtype)
    plan = checked_plan(
        page_table,
        seq_lens,
        cu_seqlens_q,
        shared_lens,
        page_size=page_size,
        num_q_heads=num_q_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        dtype=dtype,
        device=device,
        backend=backend.name,
        has_fixed_order=has_fixed_order,
    )
    backend.prepare(plan)
    return plan


def paged_attention(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    plan: AttentionPlan,
    *,
    scale: float,
    sliding_window: int | None = None,
    chunk_size: int | None = None,
    soft_cap: float | None = None,
    sinks: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Causal attention of ragged query tokens over paged KV: [num_tokens, num_q_heads, v_head_dim] in the dtype of q.

    Args and errors: see `paged_attention_with_lse`.
    """
    return paged_attention_with_lse(
        q,
        k_pool,
        v_pool,
        plan,
        scale=scale,
        sliding_window=sliding_window,
        chunk_size=chunk_size,
        soft_cap=soft_cap,
        sinks=sinks,
        out=out,
    )[0]


def paged_attention_with_lse(
    q: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    plan: AttentionPlan,
    *,
    scale: float,
    sliding_window: int | None = None,
    chunk_size: int | None = None,
    soft_cap: float | None = None,
    sinks: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Causal attention of ragged query tokens over paged KV, with the log of the softmax denominators.

    The KV of this step's tokens must be in the pool already. Token j of row b is at position seq_lens[b] - q_len[b] + j and attends to
    all positions up to its own.

    Args:
        q: [num_tokens, num_q_heads, head_dim]; the two last dimensions contiguous.
        k_pool, v_pool: one layer's KV (see the module), dtype of q; on a GPU also float8_e4m3fn, without NaN in slots that a row uses; on
            a CPU also int8. Slots that no row uses may hold anything, NaN included. With one KV head, pools may be parts of longer lines,
            and v_pool a view of k_pool; not in int8.
        plan: the plan of this step, from `plan_attention`.
        scale: factor by which q.k is multiplied; positive and finite.
        sliding_window: only keys at positions > q_position - sliding_window.
        chunk_size: only keys with key_position // chunk_size == q_position // chunk_size.
        soft_cap: scores become soft_cap * tanh(score / soft_cap).
        sinks: [num_q_heads] logits, one extra key per head without a value.
        out: written and returned if given: [num_tokens, num_q_heads, v_head_dim], contiguous, dtype of q.
    Returns:
        The output, and lse float32 [num_tokens, num_q_heads]: natural log of the sum of exponentials, sinks included.
    Raises:
        ValueError: a shape or dtype differs from the above or from the plan, or the scale is not positive and finite.
    Source: Milakov & Gimelshein 2018, Dao et al. 2022 (online softmax); Ye et al. 2025 (composition over shared prefixes).
    """
    expected = (plan.num_tokens, plan.num_q_heads, plan.head_dim)
    if q.shape != expected or q.dtype != plan.dtype:
        raise ValueError(f"q = {q.dtype} {list(q.shape)}: expected {plan.dtype} {list(expected)}, as in the plan")
    is_float8 = k_pool.dtype == torch.float8_e4m3fn and plan.backend != "cpu"
    is_int8 = k_pool.dtype == torch.int8 and plan.backend != "triton"
    if v_pool.dtype != k_pool.dtype or not (is_float8 or is_int8 or k_pool.dtype == q.dtype):
        raise ValueError(
            f"k_pool, v_pool = {k_pool.dtype}, {v_pool.dtype}: expected both to be {q.dtype}, or both float8_e4m3fn on a GPU, "
            "or both int8 on a CPU"
        )
    if k_pool.shape[1:] != (plan.num_kv_heads, plan.head_dim):
        raise ValueError(f"k_pool = {list(k_pool.shape)}: expected [num_slots, {plan.num_kv_heads}, {plan.head_dim}]")
    if not 0 < scale < float("inf"):
        raise ValueError(f"scale = {scale}: expected a positive, finite number")
    shape = (plan.num_tokens, plan.num_q_heads, v_pool.shape[2])
    if out is None:
        out = torch.empty(shape, dtype=q.dtype, device=q.device)
    elif out.shape != shape or out.dtype != q.dtype or not out.is_contiguous():
        raise ValueError(f"out = {out.dtype} {list(out.shape)}: expected contiguous {q.dtype} {list(shape)}")
    lse = torch.empty(shape[:2], dtype=torch.float32, device=q.device)
    backend = backend_named(plan.backend)
    backend.paged_attention(q, k_pool, v_pool, plan, scale, sliding_window, chunk_size, soft_cap, sinks, out, lse)
    return out, lse


def merge_states(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """Combine two partial attention results over disjoint key ranges.

    Args:
        out_a, out_b: [num_tokens, num_heads, head_dim], same float dtype.
        lse_a, lse_b: [num_tokens, num_heads] float32, natural log of the summed exponentials.
    Returns:
        Output and lse of the union, shaped and typed as the inputs. A side whose lse is -inf (it saw no key) leaves the other unchanged,
        whatever its output holds; if both are -inf, the output is 0.
    Raises:
        ValueError: a shape or dtype differs from the above; names the argument.
    Source: Ye et al. 2025 (FlashInfer), attention composition.
    """
    if out_b.shape != out_a.shape or out_b.dtype != out_a.dtype:
        raise ValueError(
            f"out_b = {out_b.dtype} {list(out_b.shape)}: expected {out_a.dtype} {list(out_a.shape)}, as for out_a"
        )
    for name, lse in (("lse_a", lse_a), ("lse_b", lse_b)):
        if lse.shape != out_a.shape[:2] or lse.dtype != torch.float32:
            raise ValueError(f"{name} = {lse.dtype} {list(lse.shape)}: expected float32 {list(out_a.shape[:2])}")
    return backend_for(out_a.device, out_a.dtype).merge_states(out_a, lse_a, out_b, lse_b)


def write_kv(k: Tensor, v: Tensor, k_pool: Tensor, v_pool: Tensor, slot_mapping: Tensor) -> None:
    """Write the keys and values of a step into their slots.

    Args:
        k: [num_tokens, num_kv_heads, head_dim].  v: [num_tokens, num_kv_heads, v_head_dim].
        k_pool, v_pool: written in place at `slot_mapping`; float8_e4m3fn pools saturate at 448, int8 pools have a scale for
            each head of a token (`contract.kv_lines`).
        slot_mapping: int64 [num_tokens], no slot twice; nothing is written for a negative one.
    """
    backend_for(k.device, k.dtype).write_kv(k, v, k_pool, v_pool, slot_mapping)


def copy_pages(
    pools: Sequence[Tensor], src_page_ids: Sequence[int], dst_page_ids: Sequence[int], page_size: int
) -> None:
    """Copy whole pages within each pool.

    Args:
        pools: each [num_slots, ...], contiguous; written in place.
        src_page_ids, dst_page_ids: of equal length; page dst[i] receives the contents that page src[i] had before the call.
    Raises:
        ValueError: the lists differ in length.
    """
    if len(src_page_ids) != len(dst_page_ids):
        raise ValueError(
            f"dst_page_ids has {len(dst_page_ids)} pages: expected {len(src_page_ids)}, as in src_page_ids"
        )
    if src_page_ids:
        if pools[0].dtype.itemsize == 1:
            pools = [pool.view(torch.uint8) for pool in pools]
        dtype = torch.float32 if pools[0].dtype == torch.uint8 else pools[0].dtype
        backend_for(pools[0].device, dtype).copy_pages(pools, src_page_ids, dst_page_ids, page_size)


def rope_append(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cos: Tensor,
    sin: Tensor,
    positions: Tensor,
    k_pool: Tensor,
    v_pool: Tensor,
    slot_mapping: Tensor,
    *,
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-6,
) -> None:
    """Rotate queries in place; rotate keys and write them with the values into the pool. All sums are float32.

    The halves of the first 2 * half dimensions of a head are rotated against each other ("rotate half"); the other dimensions stay as they
    are.

    Args:
        q: [num_tokens, num_q_heads, head_dim], written; k: [num_tokens, num_kv_heads, head_dim], may be written; v likewise with
            v_head_dim. Each token's heads are contiguous; tokens may be strided (a fused projection).
        cos, sin: float32 [max_positions, half], half <= head_dim / 2.
        positions: int64 [num_tokens], rows of cos and sin.
        slot_mapping: int64 [num_tokens], no slot twice; nothing is written for a negative one.
        q_norm, k_norm: [head_dim] weights of a per-head RMS norm before the rotation, or None.
    """
    backend_for(q.device, q.dtype).rope_append(
        q, k, v, cos, sin, positions, k_pool, v_pool, slot_mapping, q_norm, k_norm, eps
    )


def add_rms_norm(x: Tensor, residual: Tensor | None, weight: Tensor, eps: float) -> Tensor:
    """Add x to the residual and normalize the sum: [num_tokens, hidden_size] in the dtype of x.

    Args:
        x: [num_tokens, hidden_size], contiguous.
        residual: as x; becomes residual + x, rounded to its dtype, and that sum is normalized. None normalizes x itself.
        weight: [hidden_size], dtype of x or float32.
    """
    return backend_for(x.device, x.dtype).add_rms_norm(x, residual, weight, eps)


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """silu(gate) * up of a fused projection [num_tokens, 2 * size], gate first: [num_tokens, size]."""
    return backend_for(gate_up.device, gate_up.dtype).silu_and_mul(gate_up)


def gelu_and_mul(gate_up: Tensor) -> Tensor:
    """gelu(gate) * up, as `silu_and_mul`, with the tanh form of the activation.

    Source: Hendrycks & Gimpel 2016 (GELU).
    """
    return backend_for(gate_up.device, gate_up.dtype).gelu_and_mul(gate_up)


def scaled_add(x: Tensor, residual: Tensor, factor: float) -> None:
    """Add x * factor, rounded to its dtype, to the residual in place.

    Args:
        x: [num_tokens, hidden_size]; may be written.
        residual: as x.
    """
    backend_for(x.device, x.dtype).scaled_add(x, residual, factor)


def sigmoid_gate(x: Tensor, gate: Tensor) -> None:
    """Multiply x by sigmoid(gate) in place. A row's bits depend on this row only.

    Args:
        x, gate: [num_tokens, size], a row's elements contiguous.
    """
    backend_for(x.device, x.dtype).sigmoid_gate(x, gate)


def causal_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    states: Tensor,
    plan: StatePlan,
    *,
    activation: str | None = None,
) -> Tensor:
    """Convolve each channel with the last `width` inputs of its own sequence: [num_tokens, num_channels] in the dtype of x.

    A token's bits do not depend on how its sequence is divided into rows and steps. The same holds for the two functions below.

    Args:
        x: [num_tokens, num_channels] of the rows of `plan`, any strides.
        weight: [num_channels, width], the weight of the newest input last. bias: [num_channels] or None.
        states: [num_slots, num_channels, width - 1], the inputs before the next token, oldest first; marked slots are written.
        activation: "silu" ("swish" is the same), or None.
    Raises:
        ValueError: an unknown activation.
    """
    if activation not in (None, "silu", "swish"):
        raise ValueError(f"activation = {activation!r}: expected None, 'silu' or 'swish'")
    return backend_for(x.device, x.dtype).causal_conv(x, weight, bias, states, plan, activation)


def gated_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor | None,
    states: Tensor,
    plan: StatePlan,
    *,
    scale: float = 1.0,
    is_delta: bool = False,
    norm_eps: float | None = None,
) -> Tensor:
    """Linear attention with a decaying matrix per head: [num_tokens, num_v_heads, v_dim] in the dtype of v.

    For each token, in float32:  S = exp(log_decay) * S;  u = beta * (v - S^T k) with `is_delta`, else beta * v;  S = S + k u^T;
    o = scale * S^T q.  This is the gated delta rule (one decay per head), Kimi's delta attention (one per key dimension), and without
    `is_delta` Mamba-2 (q = C, k = B, v = dt * x, log_decay = dt * A) and lightning attention.

    Args:
        q, k: [num_tokens, num_k_heads, k_dim]; v: [num_tokens, num_v_heads, v_dim]. Head h of v belongs to head
            h // (num_v_heads / num_k_heads) of q and k. A head's values are contiguous; heads and tokens may be strided.
        log_decay: float32 [num_tokens, num_v_heads] or [num_tokens, num_v_heads, k_dim], at most 0.
        beta: [num_tokens, num_v_heads], or None for 1.
        states: float32 [num_slots, num_v_heads, k_dim, v_dim], contiguous within a slot; marked slots are written.
        norm_eps: if given, q and k are first divided by sqrt(their sum of squares + norm_eps).
    Source: Yang et al. 2025 (Gated DeltaNet), Dao and Gu 2024 (Mamba-2), Kimi Team 2025 (Kimi Linear).
    """
    backend = backend_for(v.device, v.dtype)
    return backend.gated_recurrence(q, k, v, log_decay, beta, states, plan, scale, is_delta, norm_eps)


def selective_scan(
    x: Tensor,
    delta: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None,
    states: Tensor,
    plan: StatePlan,
) -> Tensor:
    """The scan of Mamba: [num_tokens, num_channels] in the dtype of x.

    For each token, in float32:  S = exp(delta * a) * S + (delta * x) b^T;  y = S c + d * x.

    Args:
        x: [num_tokens, num_channels]. delta: the same shape, positive (after softplus).
        a: float32 [num_channels, state_size], negative. b, c: [num_tokens, state_size]. d: [num_channels] or None.
        states: float32 [num_slots, num_channels, state_size]; marked slots are written.
    Source: Gu and Dao 2023 (Mamba).
    """
    return backend_for(x.device, x.dtype).selective_scan(x, delta, a, b, c, d, states, plan)


def sample(
    logits: Tensor,
    *,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    min_p: Any,
    seeds: Any,
    choices: Any,
    steps: Any,
    bitmask: Any = None,
    mask_rows: Any = None,
) -> tuple[Tensor, Tensor]:
    """Sample one token per row: argmax over allowed v of logits[v] / temperature + Gumbel noise.

    Order: mask, temperature, top-k, top-p on the renormalised top-k set, min-p relative to the likeliest token. The noise of
    (row, token v) is lane v % 4 of Philox4x32-10 with a key from (seed, choice) and counter (v // 4, step), so for equal logits a
    token depends on nothing else. Backends agree bit for bit.

    Args (arrays or CPU tensors, one entry per row of logits):
        logits: [num_rows, vocab_size] float32 or bfloat16; not written.
        temperature: float32; below 1e-5 sampling is greedy (the lowest id wins a tie).
        top_k: int, 0 keeps all.  top_p: float32, 1 keeps all.  min_p: float32, 0 keeps all.
        seeds: uint64.  choices: int32.  steps: int64, number of tokens that the sequence has sampled before.
        bitmask: int32 [num_masks, ceil(vocab_size / 32)]; bit v % 32 of word v // 32 set means allowed.
        mask_rows: int32, row of the bitmask, -1 where all tokens are allowed.
    Returns:
        token_ids int64 [num_rows] and is_finite bool [num_rows]. is_finite is False, and the token 0, if the logits of the row contain
        NaN, if an allowed logit is +inf, or if no allowed logit is above -inf.
    Raises:
        ValueError: an argument has a wrong shape; names it.
    """
    num_rows, vocab_size = logits.shape
    settings = checked_settings(
        num_rows, vocab_size, temperature, top_k, top_p, min_p, seeds, choices, steps, bitmask, mask_rows
    )
    return backend_for(logits.device, logits.dtype).sample(logits, settings)


def logprobs(logits: Tensor, token_ids: Tensor, num_top: int) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the log-probabilities of given tokens and of the likeliest tokens.

    Args:
        logits: [num_rows, vocab_size] float32 or bfloat16.
        token_ids: int64 [num_rows].
        num_top: number of likeliest tokens to report, 0 to vocab_size.
    Returns:
        logprob float32 [num_rows], top_ids int64 [num_rows, num_top], top_logprobs float32 [num_rows, num_top], likeliest first,
        the lower id first among equals.
    """
    return backend_for(logits.device, logits.dtype).logprobs(logits, token_ids, num_top)


def apply_token_mask(logits: Tensor, bitmask: Any, mask_rows: Any) -> None:
    """Set the logits of forbidden tokens to -inf, in place. Arguments as in `sample`, which applies masks itself."""
    num_rows, vocab_size = logits.shape
    masks, rows = checked_bitmask(num_rows, vocab_size, bitmask, mask_rows)
    backend_for(logits.device, logits.dtype).apply_token_mask(logits, masks, rows)


def apply_penalties(
    logits: Tensor,
    *,
    prompt_token_ids: Sequence[int] = (),
    output_token_ids: Sequence[int] = (),
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
) -> None:
    """Lower the logits of tokens seen before, in place, for one row of logits [vocab_size].

    Tokens of the prompt or the output are divided (positive logit) or multiplied (negative) by the repetition penalty; then each token of
    the output loses the presence penalty once and the frequency penalty per occurrence.
    """
    backend_for(logits.device, logits.dtype).apply_penalties(
        logits,
        np.asarray(prompt_token_ids, dtype=np.int64),
        np.asarray(output_token_ids, dtype=np.int64),
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
    )
