"""Attention over a paged, prefix-shared KV cache and constrained sampling, as plain functions over tensors.

    import rtlang_kernels as rk

    plan = rk.plan_attention(page_table=..., seq_lens=..., cu_seqlens_q=..., shared_lens=..., page_size=16, ...)
    out = rk.paged_attention(q, k_pool, v_pool, plan, scale=head_dim**-0.5)
    token_ids, is_finite = rk.sample(logits, temperature=..., top_k=..., top_p=..., min_p=..., seeds=..., choices=..., steps=...)

Contracts are in `rtlang_kernels.ops`. Names are loaded on first use, so importing this package imports neither torch nor numba nor triton.
triton is imported by the first call that runs on a GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtlang_kernels.contract.attention_plan import AttentionPlan
    from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape, FusedStep
    from rtlang_kernels.contract.state_plan import StatePlan
    from rtlang_kernels.ops import (
        add_rms_norm,
        apply_penalties,
        apply_token_mask,
        backend_for,
        backend_named,
        causal_conv,
        copy_pages,
        gated_recurrence,
        gelu_and_mul,
        logprobs,
        merge_states,
        paged_attention,
        paged_attention_with_lse,
        plan_attention,
        rope_append,
        sample,
        scaled_add,
        selective_scan,
        silu_and_mul,
        write_kv,
    )
    from rtlang_kernels.precompile import start_background_compile

__all__ = [
    "AttentionPlan",
    "FusedLayer",
    "FusedShape",
    "FusedStep",
    "StatePlan",
    "add_rms_norm",
    "apply_penalties",
    "apply_token_mask",
    "backend_for",
    "backend_named",
    "causal_conv",
    "copy_pages",
    "gated_recurrence",
    "gelu_and_mul",
    "logprobs",
    "merge_states",
    "paged_attention",
    "paged_attention_with_lse",
    "plan_attention",
    "rope_append",
    "sample",
    "scaled_add",
    "selective_scan",
    "silu_and_mul",
    "start_background_compile",
    "write_kv",
]

_MODULES = {
    "AttentionPlan": "rtlang_kernels.contract.attention_plan",
    "FusedLayer": "rtlang_kernels.contract.fused_step",
    "FusedShape": "rtlang_kernels.contract.fused_step",
    "FusedStep": "rtlang_kernels.contract.fused_step",
    "StatePlan": "rtlang_kernels.contract.state_plan",
    "start_background_compile": "rtlang_kernels.precompile",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "rtlang_kernels.ops")), name)
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
