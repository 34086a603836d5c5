"""Recurrent layers of the CPU backend against the functions of transformers, and against the linear layers around them.

"linear" is the time of the packed linear layers of one layer of a model: the limit of a dense model with as many weights. The ratio
linear / ours says what share of a layer the recurrence adds. States and weights come from memory, in huge
pages, as in a model of many layers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtlang_kernels import ops
from rtlang_kernels.contract.fused_step import LinearLayer
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.cpu.linear import PackedLinear
from rtlang_kernels.cpu.linear_tuning import tune
from rtlang_kernels.host.huge_pages import in_huge_pages
from rtlang_kernels.reference import recurrence as reference
from rtlang_kernels_bench.cpu_bench import line

ROWS: tuple[tuple[int, int], ...] = ((1, 1), (8, 1), (32, 1), (1, 64), (1, 512))
"""Numbers of rows, and of tokens of each."""
QUICK_ROWS: tuple[tuple[int, int], ...] = ((1, 1), (8, 1), (1, 64))
_BYTES = 64 << 20  # of distinct states and weights, more than the caches hold
_MOST = 24  # layers
_TOLERANCE = 1e-2
_CHECKED_TOKENS = 64
Peer = Callable[[], object]


@dataclass(frozen=True)
class Shape:
    """A recurrent operation of a model, and outputs x inputs of the linear layers of one of its layers."""

    label: str
    make: Callable[[int], tuple[list[Any], tuple[int, ...], dict[str, Any]]]
    operation: str
    linears: tuple[tuple[int, int], ...] = ()
    state_dtype: torch.dtype = torch.float32
    peer: Callable[[list[Any], Tensor, StatePlan], Peer | None] = field(default=lambda *_: None)


def _delta_rule(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    """16 heads of 128 x 128, as in Qwen3.5 of 0.8 billion parameters."""
    parts = torch.randn(num_tokens, 6144).bfloat16().chunk(3, 1)
    q, k, v = (each.view(num_tokens, 16, 128) for each in parts)
    beta = torch.rand(num_tokens, 16).bfloat16()
    options = {"scale": 128**-0.5, "is_delta": True, "norm_eps": 1e-6}
    return [q, k, v, -torch.rand(num_tokens, 16), beta], (16, 128, 128), options


def _mamba_2(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    """48 heads of 64 with a state size of 128, and one group, as in Granite 4 of a billion parameters."""
    q, k = torch.randn(2, num_tokens, 1, 128).bfloat16()
    v = torch.randn(num_tokens, 48, 64).bfloat16()
    return [q, k, v, -torch.rand(num_tokens, 48), None], (48, 128, 64), {}


def _convolution(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    x, weight = torch.randn(num_tokens, 6144).bfloat16(), torch.randn(6144, 4).bfloat16()
    return [x, weight, None], (6144, 3), {"activation": "silu"}


def _mamba(num_tokens: int) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
    x, delta = torch.randn(num_tokens, 4096).bfloat16(), torch.rand(num_tokens, 4096).bfloat16()
    b, c = torch.randn(2, num_tokens, 16).bfloat16()
    return [x, delta, -torch.rand(4096, 16), b, c, torch.randn(4096)], (4096, 16), {}


def _delta_rule_peer(tensors: list[Any], states: Tensor, plan: StatePlan) -> Peer | None:
    """The function that the stock model calls on a CPU; None without transformers."""
    try:
        module = import_module("transformers.models.qwen3_next.modeling_qwen3_next")
    except ImportError:
        return None
    length = plan.num_tokens // plan.num_rows
    given = [each.unflatten(0, (plan.num_rows, length)) for each in tensors]
    name = "torch_recurrent_gated_delta_rule" if length == 1 else "torch_chunk_gated_delta_rule"
    function, before = getattr(module, name), states[: plan.num_rows]
    options = {"initial_state": before, "output_final_state": True, "use_qk_l2norm_in_kernel": True}
    return lambda: function(*given, **options)


def _scan_peer(tensors: list[Any], states: Tensor, plan: StatePlan) -> Peer | None:
    try:
        module = import_module("transformers.models.falcon_mamba.modeling_falcon_mamba")
    except ImportError:
        return None
    x, delta, a, b, c, d = tensors
    if plan.num_tokens == plan.num_rows:
        before = states[: plan.num_rows].clone()
        return lambda: module.mamba_selective_state_update(before, x, delta, a, b, c, d)
    lines = [each.T[None] for each in (x, delta)]
    return lambda: module.mamba_selective_scan(*lines, a, b.T[None], c.T[None], d, return_last_state=True)


SHAPES = (
    Shape(
        "gated delta rule 16 x 128 x 128",
        _delta_rule,
        "gated_recurrence",
        ((8192, 1024), (1024, 2048), (7168, 1024), (1024, 3584)),
        peer=_delta_rule_peer,
    ),
    Shape(
        "Mamba-2 48 x 128 x 64", _mamba_2, "gated_recurrence", ((6448, 1536), (1536, 3072), (8192, 1536), (1536, 4096))
    ),
    Shape("convolution 6144 x 4", _convolution, "causal_conv", state_dtype=torch.bfloat16),
    Shape("Mamba 4096 x 16", _mamba, "selective_scan", peer=_scan_peer),
)


def recurrence_lines(rounds: int, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """One line per operation and step, in bfloat16.

    Raises:
        ArithmeticError: a result differs from the reference.
    """
    for shape in SHAPES:
        linears = _linears(shape)
        for num_rows, length in QUICK_ROWS if is_quick else ROWS:
            tensors, state_shape, options = shape.make(num_rows * length)
            plan = StatePlan.of(
                np.arange(num_rows + 1, dtype=np.int32) * np.int32(length),
                list(range(num_rows)),
                [[(length, row)] for row in range(num_rows)],
            )
            one = torch.randn(num_rows, *state_shape).to(shape.state_dtype)
            error = _error(shape, tensors, one, options)
            layers = [in_huge_pages(one) for _ in range(max(1, min(_MOST, _BYTES // one.nbytes)))]
            functions = {"ours": _ours(shape, tensors, cycle(layers), plan, options)}
            if (peer := shape.peer(tensors, one, plan)) is not None:
                functions["transformers"] = peer
            if linears:
                functions["linear"] = _in_turn(linears, num_rows * length)
            label = f"{shape.label}, {num_rows} rows of {length}"
            yield line("recurrence", label, _measured(functions, max(5, rounds // 10)), error)


def _ours(
    shape: Shape, tensors: list[Any], layers: Iterator[Tensor], plan: StatePlan, options: dict[str, Any]
) -> Callable[[], object]:
    operation = getattr(ops, shape.operation)
    return lambda: operation(*tensors, next(layers), plan, **options)


def _error(shape: Shape, tensors: list[Any], states: Tensor, options: dict[str, Any]) -> float:
    """Difference from the reference, of the first tokens as one row."""
    num_tokens = len(tensors[0])
    count = min(num_tokens, _CHECKED_TOKENS)
    first = [each[:count] if each is not None and len(each) == num_tokens else each for each in tensors]
    plan = StatePlan.of(np.array([0, count]), [0], [[(count, 0)]])
    found, expected = states.clone(), states.clone()
    out = getattr(ops, shape.operation)(*first, found, plan, **options)
    defaults = {"scale": 1.0, "is_delta": False, "norm_eps": None} if shape.operation == "gated_recurrence" else {}
    want = getattr(reference, shape.operation)(*first, expected, plan, *(defaults | options).values())
    errors = [float((a.double() - b.double()).norm() / b.double().norm()) for a, b in ((out, want), (found, expected))]
    if not max(errors) < _TOLERANCE:
        raise ArithmeticError(f"{shape.label}: error {max(errors):.1e}")
    return max(errors)


def _linears(shape: Shape) -> list[list[LinearLayer]]:
    """The packed linear layers of as many layers as the caches do not hold."""
    num_bytes = 2 * sum(outputs * inputs for outputs, inputs in shape.linears)
    count = min(_MOST, _BYTES // num_bytes + 1) if num_bytes else 0
    layers: list[list[LinearLayer]] = [
        [PackedLinear.pack((torch.randn(size) * 0.05).bfloat16()) for size in shape.linears] for _ in range(count)
    ]
    tune([linear for layer in layers for linear in layer])
    return layers


def _in_turn(layers: list[list[LinearLayer]], num_tokens: int) -> Callable[[], None]:
    inputs = [torch.randn(num_tokens, linear.in_features).bfloat16() for linear in layers[0]]
    turn = cycle(layers)

    def run() -> None:
        for linear, x in zip(next(turn), inputs, strict=True):
            linear(x)

    return run


def _measured(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of every call, the functions in turns; CPU time of the calling thread if it is the only one."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    found: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            begun = clock()
            function()
            if turn:
                found[name].append((clock() - begun) * 1e6)
    return found
