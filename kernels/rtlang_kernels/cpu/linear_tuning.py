"""Measures at load time how far ahead linear layers request their weights, on this machine and with the weights of this model.

The best distance and cache level depend on the processor and its memory. They matter where weights come from memory; a model that fits
the caches keeps the defaults. See `rtlang_kernels.host.tuning` for the time that this may take and where results are kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.cpu.codegen.linear_vectors import BFLOAT16, FLOAT32, INT8
from rtlang_kernels.cpu.codegen.pair_vectors import NEAREST, SECOND
from rtlang_kernels.cpu.linear import Ahead, Code, PackedLinear, Prefetch
from rtlang_kernels.host.tuning import Tuning, tuning

_SUBJECT = "prefetch of linear layers"
# Weights read per measurement: more than the caches of most processors hold, some 5 ms.
_SAMPLE_BYTES = 96 << 20
_LEVELS = {NEAREST: "first", SECOND: "second"}
_SINGLE = (Ahead(8192, NEAREST), Ahead(4096, NEAREST), Ahead(2048, NEAREST), Ahead(8192, SECOND), Ahead(4096, SECOND))
_SEVERAL = (Ahead(0, SECOND), Ahead(0, NEAREST))
# Field of `Prefetch`, numbers of rows that it serves, rows of the measurement, candidates.
_CASES = (
    ("few", "1 to 2 rows", 1, _SINGLE),
    ("tile", "3 to 8 rows", 8, _SINGLE),
    ("several", "more rows", 16, _SEVERAL),
)


def tune(linears: Sequence[LinearLayer], choices: Tuning | None = None) -> None:
    """Set the prefetch of the layers of one model by what is known or measured. Other kinds of layers are ignored."""
    layers = [linear for linear in linears if isinstance(linear, PackedLinear)]
    choices = choices or tuning()
    for code in dict.fromkeys(layer.code for layer in layers):
        choices.note("linear layers", *described(code))
        _tune([layer for layer in layers if layer.code == code], choices)


def _tune(layers: Sequence[PackedLinear], choices: Tuning) -> None:
    """The same for layers of one code."""
    sample = _sample(layers)
    if not sample:
        return
    threads = torch.get_num_threads()
    clock = time.thread_time if threads == 1 else time.perf_counter  # the former does not count other programs
    made: dict[str, Ahead] = {}
    for field, rows_text, num_rows, candidates in _CASES:
        by_name = {_name(candidate, field): candidate for candidate in candidates}
        inputs = [torch.ones(num_rows, layer.in_features, dtype=layer.dtype) for layer in sample]
        trials = {name: Prefetch()._replace(**{field: candidate}) for name, candidate in by_name.items()}

        def seconds(name: str, trials: dict[str, Prefetch] = trials, inputs: list[Tensor] = inputs) -> float:
            begun = clock()
            for layer, x in zip(sample, inputs, strict=True):
                layer.multiply(x, None, trials[name])
            return clock() - begun

        shape = f"{described(sample[0].code)[0]}, {rows_text}, {threads} threads"
        made[field] = by_name[choices.choose(_SUBJECT, shape, tuple(by_name), seconds)]
    for layer in layers:
        layer.prefetch = Prefetch(**made)


def described(code: Code) -> tuple[str, str]:
    """The types of a layer, and what computes it."""
    weights = {FLOAT32: "float32", BFLOAT16: "bfloat16", INT8: "int8"}[code.element]
    products = {FLOAT32: "multiply-add", BFLOAT16: "vdpbf16ps", INT8: "vpdpbusd"}[code.element]
    if code.element != FLOAT32 and not code.is_native:
        products = "multiply-add of widened weights"
    return (
        f"{weights} weights, {'bfloat16' if code.is_bf16 else 'float32'} rows",
        f"{products}, tiles of {code.max_rows} rows",
    )


def _sample(layers: Sequence[PackedLinear]) -> list[PackedLinear]:
    """Distinct layers of `_SAMPLE_BYTES` together, evenly from all; none if there are not as many bytes."""
    total = sum(layer.weight.nbytes for layer in layers)
    if total < _SAMPLE_BYTES:
        return []
    largest = max(layer.weight.nbytes for layer in layers)
    found, num_bytes = [], 0
    for layer in layers:
        if layer.weight.nbytes == largest and largest > _SAMPLE_BYTES:  # a head: one call would take the time of many
            continue
        found.append(layer)
        num_bytes += layer.weight.nbytes
        if num_bytes >= _SAMPLE_BYTES:
            return found
    return []


def _name(ahead: Ahead, field: str) -> str:
    distance = "the next block" if field == "several" else f"{ahead.num_bytes} bytes ahead"
    return f"{distance}, {_LEVELS[ahead.level]} cache"
