"""Experts of a layer: routing, sorting and sums for one token and for many, and products of floats and of few bits in every tile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch

from rtlang_kernels.contract.experts import ExpertGate, StackedLayer
from rtlang_kernels.triton.aot.linear_cases import DTYPES, EXAMPLES, example_weight
from rtlang_kernels.triton.aot.recording import Case
from rtlang_kernels.triton.experts.experts import GpuExperts, route

META = torch.device("meta")
HIDDEN, INNER = 256, 128
GPT_OSS = ExpertGate(is_alternating=True, alpha=1.702, offset=1.0, limit=7.0)


class Experts(NamedTuple):
    """A layer of experts. `format`: a key of EXAMPLES, or None for floats."""

    dtype: str
    num_experts: int
    num_slots: int
    format: str | None = None
    gate: ExpertGate = ExpertGate()
    has_bias: bool = False
    has_orders: bool = False
    num_tokens: tuple[int, ...] = (1, 64, 512)


LAYERS = {
    "qwen3": Experts("bf16", 128, 8),
    "qwen3-next": Experts("bf16", 512, 10),
    "mixtral": Experts("bf16", 8, 2, "int4"),
    "int4 orders": Experts("bf16", 8, 2, "int4", has_orders=True),
    "float8": Experts("bf16", 8, 2, "float8-128"),
    "gpt-oss": Experts("bf16", 32, 4, "mxfp4", GPT_OSS, has_bias=True),
    "gpt-oss floats": Experts("bf16", 32, 4, None, GPT_OSS, has_bias=True, num_tokens=(512,)),
    "fp32": Experts("fp32", 8, 2, num_tokens=(1, 64)),
}


def expert_cases() -> Iterator[Case]:
    """All kernels of experts."""
    for name, layer in LAYERS.items():
        yield Case(f"{layer.dtype} {name}", partial(_run, layer))


def _run(experts: Experts) -> None:
    dtype, count = DTYPES[experts.dtype], experts.num_experts
    layers = [_layer(experts, *sizes) for sizes in ((2 * INNER, HIDDEN), (HIDDEN, INNER))]
    layer = GpuExperts(layers[0], layers[1], count, experts.gate, dtype)
    for num_tokens in experts.num_tokens:
        x = torch.empty(num_tokens, HIDDEN, dtype=dtype, device=META)
        logits = torch.empty(num_tokens, count, dtype=dtype, device=META)
        layer(x, *route(logits, experts.num_slots, True))


def _layer(experts: Experts, num_outputs: int, num_inputs: int) -> StackedLayer:
    dtype, num_rows = DTYPES[experts.dtype], experts.num_experts * num_outputs
    bias = torch.empty(num_rows, dtype=dtype, device=META) if experts.has_bias else None
    orders = None
    if experts.has_orders:
        orders = torch.empty(experts.num_experts, num_inputs, dtype=torch.int64, device=META)
    if experts.format is None:
        return StackedLayer(torch.empty(num_rows, num_inputs, dtype=dtype, device=META), bias, orders)
    return StackedLayer(example_weight(EXAMPLES[experts.format], num_rows, num_inputs), bias, orders)
