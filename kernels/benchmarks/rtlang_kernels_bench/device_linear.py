"""Linear layers over weights of few bits, and over floats in a fixed order, on a GPU: checked against float64, for equal bits among any
other rows, and timed.

The baseline is torch's product with the same weights in bfloat16, which take two to four times the bytes of weights of few bits. For floats
it shows the price of the fixed order. Layers that can have float8 inputs are timed with these as well.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.contract.low_bit import (
    SUPER_GROUP,
    GroupedRows,
    HeldWeight,
    ScaleType,
    WeightFormat,
    takes_float8_inputs,
)
from rtlang_kernels.dispatch import triton_backend
from rtlang_kernels.planning.tile_sizes import float8_product_obstacle
from rtlang_kernels.reference.low_bit import exact_weight
from rtlang_kernels_bench import baselines
from rtlang_kernels_bench.device_cases import TOLERANCE, Ceilings, Measure, num_sets
from rtlang_kernels_bench.table import Line

E2M1_TWICE = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FLOAT8_ROWS = WeightFormat(8, scales=ScaleType.NONE, is_float8=True)
FORMATS = {
    "q4_0": WeightFormat(4, zero=8),
    "q4_1": WeightFormat(4, has_offsets=True),
    "q5_0": WeightFormat(5, zero=16),
    "q8_0": WeightFormat(8, zero=128),
    "q2_k": WeightFormat(2, 16, ScaleType.SUPER, has_offsets=True),
    "q3_k": WeightFormat(3, 16, ScaleType.SUPER, zero=4),
    "q4_k": WeightFormat(4, 32, ScaleType.SUPER, has_offsets=True),
    "q5_k": WeightFormat(5, 32, ScaleType.SUPER, has_offsets=True),
    "q6_k": WeightFormat(6, 16, ScaleType.SUPER, zero=32),
    "iq4_xs": WeightFormat(4, 32, ScaleType.SUPER, table=IQ4_NL),
    "mxfp4": WeightFormat(4, 32, ScaleType.BFLOAT16, table=E2M1_TWICE),
    "nvfp4": WeightFormat(4, 16, table=E2M1_TWICE),
    "int4": WeightFormat(4, 128, ScaleType.BFLOAT16, has_zero_points=True),
    "float8": FLOAT8_ROWS,
    "float8 128": WeightFormat(8, 128, ScaleType.FLOAT32, is_float8=True),
}
FLOATS = "floats"
CHECKED_SIZE = (200, 4096)  # outputs and inputs: several parts
CHECKED_ROWS = (1, 2, 16, 17, 64, 65, 600)  # with every tile; the last has all parts in one program
CHECKED_OUTPUTS = 256  # of a timed layer: the exact product is float64 on the CPU
TIMED = [(name, 4096, 4096) for name in ("q4_k", "q4_0", "q8_0", "q6_k", "mxfp4", "float8")]
TIMED += [("q4_k", 28672, 4096), ("q4_k", 4096, 14336), (FLOATS, 4096, 4096), (FLOATS, 28672, 4096)]
TIMED += [("int4", 4096, 4096), ("float8 128", 4096, 4096), ("int4", 28672, 4096), ("float8", 28672, 4096)]
FLOAT8_INPUTS_ERROR = 0.05
TIMED_ROWS = (1, 16, 512)


def random_weight(fmt: WeightFormat, num_outputs: int, num_inputs: int, seed: int = 0) -> HeldWeight:
    """Random codes and scales; narrow ones where files have such."""
    generator = torch.Generator().manual_seed(seed)

    def integers(high: int, width: int, kind: torch.dtype = torch.uint8) -> Tensor:
        return torch.randint(high, (num_outputs, width), generator=generator).to(kind)

    def floats(size: float, width: int) -> Tensor:
        return (torch.rand(num_outputs, width, generator=generator) + 0.5) * size

    rows = GroupedRows(integers(1 << fmt.bits, num_inputs))
    if fmt.is_float8:
        rows.codes = torch.where(rows.codes & 127 == 127, 0, rows.codes)
    size, groups = 0.05 / (1 << fmt.bits), num_inputs // fmt.group
    if fmt.scales is ScaleType.NONE:
        rows.row_scales = floats(size, 1).flatten()
    elif fmt.scales is ScaleType.SUPER:
        high = 16 if fmt.bits == 2 else 64
        rows.scales = integers(high, groups, torch.int8)
        rows.super_scales = floats(size / high, num_inputs // SUPER_GROUP).half()
        if fmt.has_offsets:
            rows.offsets = integers(high, groups)
            rows.super_offsets = floats(0.03 / high, num_inputs // SUPER_GROUP).half()
    else:
        scales = floats(size, groups)
        if fmt.table == E2M1_TWICE and fmt.group == 32:  # a power of two
            scales = scales.log2().round().exp2()
        elif fmt.table == E2M1_TWICE:  # float8, and a scale of the tensor
            scales, rows.row_scales = floats(1.0, groups).to(torch.float8_e4m3fn), torch.full((num_outputs,), size)
        rows.scales = scales.to(getattr(torch, fmt.scales.value))
        rows.offsets = -floats(0.03, groups).half() if fmt.has_offsets else None
        rows.zero_points = integers(1 << fmt.bits, groups) if fmt.has_zero_points else None
    return HeldWeight(fmt, rows)


def check(name: str, dtype: torch.dtype, is_gated: bool, device: torch.device) -> float:
    """A layer against float64, its bits for several numbers of rows, and its rows.

    Raises:
        ArithmeticError: the error is too large, or a row has other bits among other rows.
    """
    layer, exact = _made(name, *CHECKED_SIZE, dtype, device, is_gated=is_gated)
    x = torch.randn(max(CHECKED_ROWS), CHECKED_SIZE[1], generator=torch.Generator().manual_seed(1)).to(dtype)
    whole = layer(x.to(device))
    wanted = x.double() @ exact.T
    if is_gated:
        gate, up = wanted.chunk(2, 1)
        wanted = functional.silu(gate) * up
    else:
        indices = torch.tensor([CHECKED_SIZE[0] - 1, 0])
        rows = layer.rows(indices.to(device)).cpu().double()
        _below(f"rows of {name}", _error(rows, exact[indices]), TOLERANCE[dtype])
    for count in CHECKED_ROWS:
        if not torch.equal(layer(x[-count:].to(device)), whole[-count:]):
            raise ArithmeticError(f"{name}: a row has other bits among {count} rows than among {len(x)}")
    limit = TOLERANCE[dtype] * (2 if is_gated else 1)  # a product of two results has the errors of both
    return _below(name, _error(whole.cpu().double(), wanted), limit)


def check_float8_inputs(device: torch.device) -> float:
    """A layer with float8 inputs against float64 on the inputs that torch rounds; 0 on a GPU without them.

    Raises:
        ArithmeticError: the error is too large.
    """
    if float8_product_obstacle(device) is not None:
        return 0.0
    weight = random_weight(FLOAT8_ROWS, CHECKED_SIZE[0] // 16 * 16, CHECKED_SIZE[1])
    layer, errors = _with_float8_inputs(weight), []
    for count in CHECKED_ROWS:
        x = torch.randn(count, CHECKED_SIZE[1], generator=torch.Generator().manual_seed(count)).bfloat16()
        scales = x.float().abs().amax(1, keepdim=True) / 448
        rounded = (x.float() * (1 / scales)).to(torch.float8_e4m3fn).double() * scales.double()
        found = layer(x.to(device)).cpu().double()
        errors.append(_error(found, rounded @ exact_weight(weight).T))
    return _below("float8 inputs", max(errors), TOLERANCE[torch.bfloat16])


def _with_float8_inputs(weight: HeldWeight) -> LinearLayer:
    make = triton_backend().float8_input_linear
    assert make is not None
    return make([weight], None, False, torch.bfloat16)


def _made(
    name: str,
    num_outputs: int,
    num_inputs: int,
    dtype: torch.dtype,
    device: torch.device,
    *,
    is_gated: bool = False,
    num_exact: int | None = None,
) -> tuple[Any, Tensor]:
    """A layer of a format or of FLOATS, and the first rows of its weight in float64."""
    backend = triton_backend()
    if name != FLOATS:
        weight = random_weight(FORMATS[name], num_outputs, num_inputs)
        layer = backend.low_bit_linear([weight], None, is_gated, dtype)
        return layer, exact_weight(weight, 0, num_exact or num_outputs)
    floats = torch.randn(num_outputs, num_inputs, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert backend.fixed_linear is not None
    return backend.fixed_linear([floats.to(device)], None, is_gated), floats[:num_exact].double()


def _error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def _below(name: str, error: float, limit: float) -> float:
    if not error < limit:
        raise ArithmeticError(f"{name}: error {error:.1e}, less than {limit:.0e} is allowed")
    return error


def linear_lines(
    name: str, num_outputs: int, num_inputs: int, device: torch.device, ceilings: Ceilings, measure: Measure
) -> Iterator[Line]:
    """Check and time a layer for several numbers of rows, in bfloat16. The floor counts the bytes that the layer holds.

    Raises:
        ArithmeticError: a result is wrong; it was not timed.
    """
    num_exact = min(num_outputs, CHECKED_OUTPUTS)
    layer, exact = _made(name, num_outputs, num_inputs, torch.bfloat16, device, num_exact=num_exact)
    num_bytes = layer.num_bytes
    copies = num_sets(num_bytes, ceilings.l2_bytes)
    layers = [layer, *(copy.deepcopy(layer) for _ in range(copies - 1))]
    dense = layer.rows(torch.arange(num_outputs, device=device))
    plain = [dense, *(dense.clone() for _ in range(num_sets(dense.nbytes, ceilings.l2_bytes) - 1))]
    for num_rows in TIMED_ROWS:
        x = torch.randn(num_rows, num_inputs, generator=torch.Generator().manual_seed(num_rows)).bfloat16()
        label = f"bfloat16 {name} {num_rows} x {num_outputs} x {num_inputs}"
        there = x.to(device)
        found = layer(there)[:, : len(exact)].cpu().double()
        error = _below(f"linear {label}", _error(found, x.double() @ exact.T), TOLERANCE[torch.bfloat16])
        ours, spread = measure([partial(each, there) for each in layers])
        moved = num_bytes + 2 * num_rows * (num_inputs + num_outputs)
        floor = 1e6 * max(moved / ceilings.bytes_per_s, 2 * num_rows * num_outputs * num_inputs / ceilings.flops_per_s)
        calls = [partial(functional.linear, there, each) for each in plain]
        peers = baselines.tried("torch bfloat16", partial(_median, measure, calls))
        yield Line("linear", label, ours, spread, 0.0, floor, peers, error)
        weight = None if name == FLOATS else random_weight(FORMATS[name], num_outputs, num_inputs)
        if weight is None or not takes_float8_inputs(weight) or float8_product_obstacle(device) is not None:
            continue
        label += " float8 inputs"
        rounding = _with_float8_inputs(weight)
        error = _error(rounding(there)[:, : len(exact)].cpu().double(), x.double() @ exact.T)
        _below(f"linear {label}", error, FLOAT8_INPUTS_ERROR)
        timed = [rounding, *(copy.deepcopy(rounding) for _ in range(copies - 1))]
        theirs, spread = measure([partial(each, there) for each in timed])
        yield Line("linear", label, theirs, spread, 0.0, floor, {**peers, "float inputs": ours}, error)


def _median(measure: Measure, calls: Sequence[Callable[[], object]]) -> float:
    return measure(calls)[0]
