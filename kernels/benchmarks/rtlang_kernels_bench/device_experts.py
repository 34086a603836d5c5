"""Experts of a layer on a GPU: checked against float64, for equal bits among any other tokens, and timed.

The baseline for floats is torch's grouped product (`torch._grouped_mm`), twice, with the gate in between; it neither routes nor sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.experts import ExpertGate, StackedLayer
from rtlang_kernels.contract.low_bit import StackedWeight
from rtlang_kernels.dispatch import triton_backend
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels_bench import baselines
from rtlang_kernels_bench.device_cases import TOLERANCE, Ceilings, Measure
from rtlang_kernels_bench.device_linear import FORMATS, random_weight
from rtlang_kernels_bench.table import Line


@dataclass(frozen=True, slots=True)
class ExpertsShape:
    """Sizes of a layer. `weights`: "bfloat16", or a format of `device_linear`."""

    name: str
    num_experts: int
    num_slots: int
    hidden: int
    inner: int
    weights: str = "bfloat16"

    @property
    def label(self) -> str:
        """Name and weights."""
        return f"{self.name} {self.weights}"


SHAPES: tuple[ExpertsShape, ...] = (
    ExpertsShape("qwen3-30b-a3b", 128, 8, 2048, 768),
    ExpertsShape("gpt-oss-20b", 32, 4, 2880, 2880, "mxfp4"),
    ExpertsShape("mixtral-8x7b", 8, 2, 4096, 14336, "int4"),
)
CHECKED: tuple[ExpertsShape, ...] = (
    ExpertsShape("small", 8, 2, 256, 256),
    ExpertsShape("small", 8, 2, 256, 256, "mxfp4"),
    ExpertsShape("small", 8, 2, 256, 256, "float8 128"),
)
TIMED_ROWS = (1, 64, 2048)
CHECKED_ROWS = (1, 40, 700)
_EXACT_TOKENS = 2  # of a call: the exact results are float64 on the CPU


class Case:
    """Experts with random weights. All experts have the same codes, if they have few bits, which takes less time to make."""

    def __init__(self, shape: ExpertsShape, device: torch.device) -> None:
        self.shape = shape
        self.stacks: list[Tensor] = []
        self._codes: list[Tensor] = []
        generator = torch.Generator(device).manual_seed(0)
        layers = []
        for num_outputs, num_inputs in ((2 * shape.inner, shape.hidden), (shape.hidden, shape.inner)):
            if shape.weights == "bfloat16":
                size = shape.num_experts * num_outputs, num_inputs
                stack = torch.randn(size, generator=generator, device=device) * num_inputs**-0.5
                self.stacks.append(stack.bfloat16())
                layers.append(StackedLayer(self.stacks[-1]))
            else:
                weight = random_weight(FORMATS[shape.weights], num_outputs, num_inputs)
                self._codes.append(exact_weight(weight))
                layers.append(StackedLayer(StackedWeight([weight] * shape.num_experts)))
        make = triton_backend().stacked_experts
        assert make is not None
        self.experts: Any = make(layers[0], layers[1], shape.num_experts, ExpertGate(), torch.bfloat16)

    def inputs(self, num_rows: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """States, experts and weights of some tokens; routed by `route`."""
        generator = torch.Generator().manual_seed(num_rows)
        x = torch.randn(num_rows, self.shape.hidden, generator=generator).bfloat16().to(device)
        logits = torch.randn(num_rows, self.shape.num_experts, generator=generator).bfloat16().to(device)
        return x, *triton_backend().route(logits, self.shape.num_slots, True)

    def exact(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        """The results in float64."""
        found = torch.zeros(len(x), self.shape.hidden, dtype=torch.float64)
        for token, experts in enumerate(ids.tolist()):
            for slot, expert in enumerate(experts):
                gate, up = (self._matrix(0, expert) @ x[token].cpu().double()).chunk(2)
                y = self._matrix(1, expert) @ (functional.silu(gate) * up)
                found[token] += float(weights[token, slot]) * y
        return found

    def _matrix(self, layer: int, expert: int) -> Tensor:
        if self._codes:
            return self._codes[layer].double()
        return self.stacks[layer].view(self.shape.num_experts, -1, self.stacks[layer].shape[1])[expert].cpu().double()


def check(shape: ExpertsShape, device: torch.device) -> float:
    """Experts against float64, and the bits of a token for several numbers of tokens; returns the error.

    Raises:
        ArithmeticError: the error is too large, or a token has other bits among other tokens.
    """
    case = Case(shape, device)
    x, ids, weights = case.inputs(max(CHECKED_ROWS), device)
    whole = case.experts(x, ids, weights)
    for count in CHECKED_ROWS:
        if not torch.equal(case.experts(x[-count:], ids[-count:], weights[-count:]), whole[-count:]):
            raise ArithmeticError(
                f"experts {shape.label}: a token has other bits among {count} tokens than among {len(x)}"
            )
    return _error(case, x, ids, weights, whole)


def experts_lines(shape: ExpertsShape, device: torch.device, ceilings: Ceilings, measure: Measure) -> Iterator[Line]:
    """Check and time a layer for several numbers of tokens. The floor counts the experts that are chosen, each once.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    case = Case(shape, device)
    for num_rows in TIMED_ROWS:
        x, ids, weights = case.inputs(num_rows, device)
        error = _error(case, x, ids, weights, case.experts(x, ids, weights))
        ours, spread = measure([partial(case.experts, x, ids, weights)])
        num_chosen, num_pairs = len(set(ids.flatten().tolist())), ids.numel()
        moved = case.experts.num_bytes * num_chosen // shape.num_experts + 4 * num_rows * shape.hidden
        flops = 6 * num_pairs * shape.hidden * shape.inner
        floor = 1e6 * max(moved / ceilings.bytes_per_s, flops / ceilings.flops_per_s)
        peers = {}
        if case.stacks:
            peers = baselines.tried("torch grouped", partial(_grouped_us, case, x, ids, measure))
        yield Line("experts", f"{shape.label} {num_rows} rows", ours, spread, 0.0, floor, peers, error)


def _error(case: Case, x: Tensor, ids: Tensor, weights: Tensor, found: Tensor) -> float:
    """The relative error of the first tokens. Raises ArithmeticError if it is too large."""
    first = slice(0, _EXACT_TOKENS)
    exact = case.exact(x[first], ids[first], weights[first])
    error = float((found[first].cpu().double() - exact).norm() / exact.norm())
    limit = 2 * TOLERANCE[torch.bfloat16]  # two layers
    if not error < limit:
        raise ArithmeticError(f"experts {case.shape.label}: error {error:.1e}, less than {limit:.0e} is allowed")
    return error


def _grouped_us(case: Case, x: Tensor, ids: Tensor, measure: Measure) -> float:
    """Microseconds of the two products of torch for pairs that are sorted already."""
    shape = case.shape
    order = ids.flatten().argsort(stable=True)
    rows = x[order // shape.num_slots]
    ends = torch.bincount(ids.flatten(), minlength=shape.num_experts).cumsum(0).to(torch.int32)
    up, down = (stack.view(shape.num_experts, -1, stack.shape[1]).transpose(1, 2) for stack in case.stacks)

    def call() -> Tensor:
        gate, factor = torch._grouped_mm(rows, up, offs=ends).chunk(2, 1)
        return torch._grouped_mm(functional.silu(gate) * factor, down, offs=ends)

    return measure([call])[0]
