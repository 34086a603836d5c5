"""Which implementation of the operations serves: a table of columns, and how one is chosen.

`reference` is the definition and runs on any device, `cpu` is fast there, `triton` is for a GPU. A column is chosen by the device of the
tensors; `RTLANG_KERNELS=reference`, read at every call, forces the definition, and `RTLANG_KERNELS=triton` the GPU's kernels, which run on
CPU tensors in triton's interpreter. `cpu` and `triton` are loaded when they are first asked for, since they import a compiler (numba,
triton) that a machine may not have. A column for another device is one more entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.fused import FusedLayer, FusedShape, FusedStep
from rtlang_kernels.plan import AttentionPlan
from rtlang_kernels.reference import attention as reference_attention
from rtlang_kernels.reference import kv_cache as reference_kv_cache
from rtlang_kernels.reference import layers as reference_layers
from rtlang_kernels.reference import sampling as reference_sampling
from rtlang_kernels.settings import SamplerSettings


@dataclass(frozen=True, slots=True)
class Column:
    """One implementation of every operation; signatures as in the reference column.

    `fused_step` is offered by some columns only, for shapes that are supported: see `rtlang_kernels.fused`.
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
    sample: Callable[[Tensor, SamplerSettings], tuple[Tensor, Tensor]]
    logprobs: Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor, Tensor]]
    apply_token_mask: Callable[[Tensor, NDArray[np.int32], NDArray[np.int32]], None]
    apply_penalties: Callable[[Tensor, NDArray[np.int64], NDArray[np.int64], float, float, float], None]
    fused_step: Callable[[FusedShape, Iterable[FusedLayer], Tensor, Tensor], FusedStep] | None = None


REFERENCE = Column(
    "reference",
    reference_attention.prepare,
    reference_attention.paged_attention,
    reference_attention.merge_states,
    reference_kv_cache.write_kv,
    reference_kv_cache.copy_pages,
    reference_layers.rope_append,
    reference_layers.add_rms_norm,
    reference_layers.silu_and_mul,
    reference_sampling.sample,
    reference_sampling.logprobs,
    reference_sampling.apply_token_mask,
    reference_sampling.apply_penalties,
)
COLUMNS = ("reference", "cpu")
"""Columns that need no GPU."""


@cache
def cpu_column() -> Column:
    """The column for a CPU; imports numba."""
    from rtlang_kernels.cpu import attention, fused_step, layers, sampling

    return Column(
        "cpu",
        attention.prepare,
        attention.paged_attention,
        reference_attention.merge_states,
        reference_kv_cache.write_kv,
        reference_kv_cache.copy_pages,
        layers.rope_append,
        layers.add_rms_norm,
        layers.silu_and_mul,
        sampling.sample,
        reference_sampling.logprobs,
        reference_sampling.apply_token_mask,
        reference_sampling.apply_penalties,
        fused_step.CpuFusedStep,
    )


@cache
def triton_column() -> Column:
    """The column for a GPU; imports triton."""
    from rtlang_kernels.triton_ops import attention, kv_cache, layers, logits, sampling

    return Column(
        "triton",
        attention.prepare,
        attention.paged_attention,
        attention.merge_states,
        kv_cache.write_kv,
        kv_cache.copy_pages,
        layers.rope_append,
        layers.add_rms_norm,
        layers.silu_and_mul,
        sampling.sample,
        logits.logprobs,
        logits.apply_token_mask,
        logits.apply_penalties,
    )


def column_for(device: torch.device, dtype: torch.dtype) -> Column:
    """The column that serves tensors of this device and dtype now; the reference where no faster one does."""
    forced = os.environ.get("RTLANG_KERNELS")
    if forced == "reference":
        return REFERENCE
    if (device.type == "cuda" or forced == "triton") and dtype in (torch.float32, torch.bfloat16, torch.float16):
        return triton_column()
    return cpu_column() if device.type == "cpu" and dtype in (torch.float32, torch.bfloat16) else REFERENCE


def column_named(name: str) -> Column:
    """A column by its name, one of COLUMNS or "triton"."""
    return REFERENCE if name == "reference" else cpu_column() if name == "cpu" else triton_column()
