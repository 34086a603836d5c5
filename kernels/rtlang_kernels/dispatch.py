"""Selection of the backend that runs the operations.

`reference` defines the operations and runs on any device, `cpu` is fast on a CPU, `triton` runs on a GPU. The device of the tensors
selects the backend. `RTLANG_KERNELS=reference`, read at every call, forces the reference; `RTLANG_KERNELS=triton` forces the GPU kernels,
which run on CPU tensors in Triton's interpreter. `cpu` and `triton` are loaded on first use, since they import a compiler (numba,
triton) that may not be installed. A new device needs one more entry here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.delta_layer import DeltaLayer, DeltaWeights
from rtlang_kernels.contract.experts import ExpertGate, Experts, StackedLayer
from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape, FusedStep, LinearLayer
from rtlang_kernels.contract.low_bit import LowBitWeight
from rtlang_kernels.contract.sampler_settings import SamplerSettings
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.reference import attention as reference_attention
from rtlang_kernels.reference import delta_layer as reference_delta
from rtlang_kernels.reference import experts as reference_experts
from rtlang_kernels.reference import kv_cache as reference_kv_cache
from rtlang_kernels.reference import layer_ops as reference_layers
from rtlang_kernels.reference import low_bit as reference_low_bit
from rtlang_kernels.reference import recurrence as reference_recurrence
from rtlang_kernels.reference import sampling as reference_sampling


@dataclass(frozen=True, slots=True)
class Backend:
    """One implementation of every operation; signatures as in the reference backend.

    `packed_linear` packs weights [out, in] whose outputs follow one another, a bias or None, and whether the results are gated
    (silu(first half) * second half); None leaves linear layers to torch. `low_bit_linear` makes a layer of weights in the sense of
    `contract.low_bit`, whose outputs follow one another, a bias, whether gated, and the dtype of inputs; `float_input_linear` does not
    quantize the inputs, or is None if no layer does; `float8_input_linear` rounds them to float8 where the weights allow it, or is None.
    `joined_linear` makes one layer of several of the same inputs, so that these are
    prepared once, or returns None if it cannot. `tune` sets what is measured of the packed layers of a model, once they are loaded.
    `fixed_linear` is `packed_linear` with one order of sums for every number of rows, where torch's depends on it; None if packed layers
    have one.
    `head_linears` packs a weight per attention head [num_heads, out, in] and returns a function that multiplies x [num_tokens, num_heads,
    in] into out [num_tokens, num_heads, out], both with contiguous heads; None leaves that to torch.
    `fused_step` is None or covers only supported shapes, see `rtlang_kernels.contract.fused_step`; it returns None for linear layers that
    are not supported. `experts` makes the experts of a layer from the first and the second linear layer of each, with inputs and results of
    a dtype; `stacked_experts` from the stacked layers and the number of experts, their gate or None, and a dtype, or it is None. `route`
    returns the experts of each token, the likeliest first, and their weights, int64 and float32 [num_tokens, num_slots], for logits
    [num_tokens, num_experts], a number of slots, and whether weights are divided by their sum. `delta_layer` makes a gated delta layer,
    see `rtlang_kernels.contract.delta_layer`.
    """

    name: str
    prepare: Callable[[AttentionPlan], None]
    paged_attention: Callable[..., None]
    merge_states: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
    write_kv: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], None]
    copy_pages: Callable[[Sequence[Tensor], Sequence[int], Sequence[int], int], None]
    rope_append: Callable[..., None]
    add_rms_norm: Callable[[Tensor, Tensor | None, Tensor, float], Tensor]
    silu_and_mul: Callable[[Tensor], Tensor]
    gelu_and_mul: Callable[[Tensor], Tensor]
    scaled_add: Callable[[Tensor, Tensor, float], None]
    sample: Callable[[Tensor, SamplerSettings], tuple[Tensor, Tensor]]
    logprobs: Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]]
    apply_token_mask: Callable[[Tensor, NDArray[np.int32], NDArray[np.int32]], None]
    apply_penalties: Callable[[Tensor, NDArray[np.int64], NDArray[np.int64], float, float, float], None]
    packed_linear: Callable[[Sequence[Tensor], Tensor | None, bool], LinearLayer] | None = None
    fixed_linear: Callable[[Sequence[Tensor], Tensor | None, bool], LinearLayer] | None = None
    low_bit_linear: Callable[[Sequence[LowBitWeight], Tensor | None, bool, torch.dtype], LinearLayer] = (
        reference_low_bit.ReferenceLowBitLinear
    )
    float_input_linear: Callable[[Sequence[LowBitWeight], Tensor | None, bool, torch.dtype], LinearLayer] | None = None
    float8_input_linear: Callable[[Sequence[LowBitWeight], Tensor | None, bool, torch.dtype], LinearLayer] | None = None
    joined_linear: Callable[[Sequence[LinearLayer]], LinearLayer | None] | None = None
    head_linears: Callable[[Tensor], Callable[[Tensor, Tensor], None]] | None = None
    tune: Callable[[Sequence[LinearLayer]], None] | None = None
    fused_step: Callable[[FusedShape, Sequence[FusedLayer], Tensor], FusedStep | None] | None = None
    causal_conv: Callable[[Tensor, Tensor, Tensor | None, Tensor, StatePlan, str | None], Tensor] = (
        reference_recurrence.causal_conv
    )
    gated_recurrence: Callable[..., Tensor] = reference_recurrence.gated_recurrence
    selective_scan: Callable[..., Tensor] = reference_recurrence.selective_scan
    delta_layer: Callable[[DeltaWeights], DeltaLayer] = reference_delta.ReferenceDeltaLayer
    sigmoid_gate: Callable[[Tensor, Tensor], None] = reference_delta.sigmoid_gate
    experts: Callable[[Sequence[LinearLayer], Sequence[LinearLayer], torch.dtype], Experts] = (
        reference_experts.ReferenceExperts
    )
    stacked_experts: Callable[[StackedLayer, StackedLayer, int, ExpertGate | None, torch.dtype], Experts] | None = None
    route: Callable[[Tensor, int, bool], tuple[Tensor, Tensor]] = reference_experts.route


REFERENCE = Backend(
    "reference",
    reference_attention.prepare,
    reference_attention.paged_attention,
    reference_attention.merge_states,
    reference_kv_cache.write_kv,
    reference_kv_cache.copy_pages,
    reference_layers.rope_append,
    reference_layers.add_rms_norm,
    reference_layers.silu_and_mul,
    reference_layers.gelu_and_mul,
    reference_layers.scaled_add,
    reference_sampling.sample,
    reference_sampling.logprobs,
    reference_sampling.apply_token_mask,
    reference_sampling.apply_penalties,
)
BACKENDS = ("reference", "cpu")
"""Names of the backends that need no GPU."""


@cache
def cpu_backend() -> Backend:
    """Return the CPU backend; imports numba."""
    from rtlang_kernels.cpu import (
        float8_linear,
        float_input_linear,
        layer_ops,
        linear,
        linear_tuning,
        low_bit_linear,
        sampling,
    )
    from rtlang_kernels.cpu.attention import attention, head_linear
    from rtlang_kernels.cpu.fused import fused_step, grouped_experts
    from rtlang_kernels.cpu.recurrence import causal_conv, delta_layer, gated_recurrence, selective_scan

    return Backend(
        "cpu",
        attention.prepare,
        attention.paged_attention,
        reference_attention.merge_states,
        layer_ops.write_kv,
        reference_kv_cache.copy_pages,
        layer_ops.rope_append,
        layer_ops.add_rms_norm,
        layer_ops.silu_and_mul,
        layer_ops.gelu_and_mul,
        layer_ops.scaled_add,
        sampling.sample,
        sampling.logprobs,
        reference_sampling.apply_token_mask,
        reference_sampling.apply_penalties,
        linear.PackedLinear.pack,
        low_bit_linear=float8_linear.low_bit_linear,
        float_input_linear=float_input_linear.float_input_linear,
        joined_linear=low_bit_linear.joined_linear,
        head_linears=head_linear.HeadLinears,
        tune=linear_tuning.tune,
        fused_step=fused_step.CpuFusedStep.of,
        experts=grouped_experts.CpuExperts.of,
        causal_conv=causal_conv.causal_conv,
        gated_recurrence=gated_recurrence.gated_recurrence,
        selective_scan=selective_scan.selective_scan,
        delta_layer=delta_layer.CpuDeltaLayer.of,
        sigmoid_gate=delta_layer.sigmoid_gate,
    )


@cache
def triton_backend() -> Backend:
    """Return the GPU backend; imports triton."""
    from rtlang_kernels.triton.attention import paged_attention
    from rtlang_kernels.triton.experts import experts
    from rtlang_kernels.triton.layers import kv_cache, layer_ops
    from rtlang_kernels.triton.linear import float8_linear, low_bit_linear
    from rtlang_kernels.triton.recurrence import recurrence
    from rtlang_kernels.triton.sampling import logits, sampler

    return Backend(
        "triton",
        paged_attention.prepare,
        paged_attention.paged_attention,
        paged_attention.merge_states,
        kv_cache.write_kv,
        kv_cache.copy_pages,
        layer_ops.rope_append,
        layer_ops.add_rms_norm,
        layer_ops.silu_and_mul,
        layer_ops.gelu_and_mul,
        layer_ops.scaled_add,
        sampler.sample,
        logits.logprobs,
        logits.apply_token_mask,
        logits.apply_penalties,
        fixed_linear=low_bit_linear.fixed_linear,
        low_bit_linear=low_bit_linear.GpuLowBitLinear,
        float8_input_linear=partial(float8_linear.float8_input_linear, layer_ops.silu_and_mul),
        causal_conv=recurrence.causal_conv,
        gated_recurrence=recurrence.gated_recurrence,
        selective_scan=recurrence.selective_scan,
        stacked_experts=experts.GpuExperts,
        route=experts.route,
    )


def backend_for(device: torch.device, dtype: torch.dtype) -> Backend:
    """Select the backend for tensors of this device and dtype; the reference if no faster one supports them."""
    forced = os.environ.get("RTLANG_KERNELS")
    if forced == "reference":
        return REFERENCE
    if (device.type == "cuda" or forced == "triton") and dtype in (torch.float32, torch.bfloat16, torch.float16):
        return triton_backend()
    return cpu_backend() if device.type == "cpu" and dtype in (torch.float32, torch.bfloat16) else REFERENCE


def backend_named(name: str) -> Backend:
    """Return the backend of this name: one of BACKENDS, or "triton"."""
    return REFERENCE if name == "reference" else cpu_backend() if name == "cpu" else triton_backend()
