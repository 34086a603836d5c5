"""Linear layers of the CPU backend against oneDNN's packed ones and plain torch, each as a share of what the machine can do.

One run measures, in turns: the rate of reading memory, the rate of the multipliers, and every implementation on layers whose weights come
from memory. The limit of a call is the longer of the times to read the weights and to multiply; a share is limit / time. With one thread,
times are CPU seconds of the calling thread, so that other load of the machine counts as little as possible.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear as plain_linear

from rtlang_kernels.contract.low_bit import GroupedRows, HeldWeight, WeightFormat
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels.cpu.linear_tuning import tune, usable_tiles
from rtlang_kernels.cpu.low_bit_linear import LowBitLinear
from rtlang_kernels.cpu.machine_rates import READ_BYTES, multiply, multiply_operations, read
from rtlang_kernels.host.huge_pages import in_huge_pages

SHAPES = (
    (4864, 896),
    (896, 4864),
    (896, 896),
    (128, 896),
    (151936, 896),
)  # outputs x inputs of the Qwen2 shape of 0.5B parameters
ROWS = (1, 2, 4, 8, 16, 32, 64, 512)
QUICK_SHAPES, QUICK_ROWS = ((896, 896), (128, 896)), (1, 8, 32)
_BYTES = 192 << 20  # distinct weights of a measurement, more than the caches hold
_MAX_LAYERS = 600
_MAX_OPERATIONS = 3e10  # of a call, after which fewer layers are taken
_TOLERANCE = 1e-2
_STATM = Path("/proc/self/statm")
_GROWTH_ROWS = 1000
_GROWTH_SHAPES = ((896, 896), (128, 896), (1024, 896))


def linear_lines(rounds: int, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """One line per shape and number of rows, in bfloat16.

    Raises:
        ArithmeticError: a result differs from float64.
    """
    memory, tiles = in_huge_pages(torch.ones(READ_BYTES // 8, dtype=torch.int64)), usable_tiles()
    for num_outputs, num_inputs in QUICK_SHAPES if is_quick else SHAPES:
        count = max(1, min(_MAX_LAYERS, _BYTES // (num_outputs * num_inputs * 2)))
        weights = [(torch.randn(num_outputs, num_inputs) * 0.05).bfloat16() for _ in range(count)]
        own = [PackedLinear.pack(weight) for weight in weights]
        tune(own)
        small = [replace(layer, weight=layer.weight.clone()) for layer in own]
        few = {f"{bits} bits": [_few_bits(weight, bits) for weight in weights] for bits in (4, 8)}
        tune([layer for layers in few.values() for layer in layers])
        library = _library_layers(weights)
        for num_rows in QUICK_ROWS if is_quick else ROWS:
            x = torch.randn(num_rows, num_inputs).bfloat16()
            error = _error(own[0](x), x, weights[0])
            operations = 2 * num_rows * num_outputs * num_inputs
            taken = max(1, min(count, int(_MAX_OPERATIONS / operations)))
            functions: dict[str, tuple[Callable[[], object], float]] = {
                "read": (lambda: read(memory.numpy()), memory.nbytes),
                "multiply": (lambda: multiply(tiles), multiply_operations(tiles)),
                "ours": (_each(own[:taken], x), taken),
                "small pages": (_each(small[:taken], x), taken),
                **{name: (_each(layers[:taken], x), taken) for name, layers in few.items()},
                "torch": (_each([_plain(weight) for weight in weights[:taken]], x), taken),
            }
            if library:
                functions["oneDNN packed"] = _each(library[:taken], x), taken
            seconds = _in_turns({name: function for name, (function, _) in functions.items()}, max(3, rounds // 15))
            per_unit = {name: statistics.median(seconds[name]) / unit for name, (_, unit) in functions.items()}
            read_s = num_outputs * num_inputs * 2 * per_unit.pop("read")
            multiply_s = operations * per_unit.pop("multiply")
            limit = max(read_s, multiply_s)
            low, _, high = statistics.quantiles(seconds["ours"], n=4)
            yield {
                "kind": "linear",
                "label": f"{num_outputs}x{num_inputs} bfloat16, {num_rows} rows",
                "us": {name: value * 1e6 for name, value in per_unit.items()},
                "ratio": {name: value / per_unit["ours"] for name, value in per_unit.items() if name != "ours"},
                "share": {name: limit / value for name, value in per_unit.items()},
                "read_gb_s": num_outputs * num_inputs * 2 / read_s / 1e9,
                "multiply_tflop_s": operations / multiply_s / 1e12,
                "spread": (high - low) / statistics.median(seconds["ours"]),
                "error": error,
            }


def memory_lines() -> Iterator[dict[str, Any]]:
    """Growth of resident memory of every implementation over many numbers of rows, in MB: kernels that are prepared for each number and
    kept add up. Nothing where the system does not tell."""
    if not _STATM.exists():
        return
    weights = [(torch.randn(shape) * 0.05).bfloat16() for shape in _GROWTH_SHAPES]
    layers: dict[str, list[Any]] = {"ours": [PackedLinear.pack(weight) for weight in weights]}
    if library := _library_layers(weights):
        layers["oneDNN packed"] = library
    counts = torch.randperm(_GROWTH_ROWS, generator=torch.Generator().manual_seed(0)).tolist()
    gained = {}
    for name, stack in layers.items():
        inputs = torch.randn(_GROWTH_ROWS, _GROWTH_SHAPES[0][1]).bfloat16()
        for rows in (_GROWTH_ROWS, 1, 8, 9, 64):  # kernels of either are compiled, buffers allocated
            _each(stack, inputs[:rows])()
        before = _resident()
        for rows in counts:
            _each(stack, inputs[: rows + 1])()
        gained[name] = (_resident() - before) / 1e6
    yield {"kind": "memory", "label": f"linear layers, {_GROWTH_ROWS} numbers of rows", "mb": gained}


def _resident() -> int:
    """Resident memory of this process in bytes."""
    return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _in_turns(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every call, the functions in turns; the first round warms up."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    found: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            begun = clock()
            function()
            if turn:
                found[name].append(clock() - begun)
    return found


def _each(layers: list[Any], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        for layer in layers:
            layer(x)

    return run


def _few_bits(weight: Tensor, bits: int) -> LowBitLinear:
    """The layer with integers of few bits and a float16 scale for 32 inputs, which quantizes its inputs as well."""
    groups = weight.float().view(len(weight), -1, 32)
    zero = 1 << (bits - 1)
    scales = (groups.abs().amax(2) / (zero - 1)).half()
    codes = (groups / scales.float()[..., None]).round().clamp(-zero, zero - 1) + zero
    rows = GroupedRows(codes.to(torch.uint8).flatten(1), scales)
    return LowBitLinear.pack([HeldWeight(WeightFormat(bits, zero=zero), rows)], None, False, weight.dtype)


def _plain(weight: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda x: plain_linear(x, weight)


def _library_layers(weights: list[Tensor]) -> list[Callable[[Tensor], Tensor]]:
    """Layers in oneDNN's own layout; none where torch has no such operators."""
    operators = torch.ops.mkldnn

    def layer(packed: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda x: operators._linear_pointwise.default(x, packed, None, "none", [], "")

    try:
        return [layer(operators._reorder_linear_weight(weight, 32)) for weight in weights]
    except (RuntimeError, AttributeError):
        return []


def _error(found: Tensor, x: Tensor, weight: Tensor) -> float:
    rows, outputs = slice(0, 4), slice(0, 4096)
    exact = x[rows].double() @ weight[outputs].double().T
    error = float((found[rows, outputs].double() - exact).norm() / exact.norm())
    if not error < _TOLERANCE:
        raise ArithmeticError(f"linear {list(weight.shape)}: error {error:.1e}")
    return error
