"""Functions over state slots against the library's functions over whole sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers.models.kimi_linear import modeling_kimi_linear
from transformers.models.mamba import modeling_mamba
from transformers.models.mamba2 import modeling_mamba2
from transformers.models.qwen3_next import modeling_qwen3_next

from rtlang.model.decoders.recurrent.primitives import MixerStates, RecurrentStep
from rtlang.model.layers.states import StateMemory, StepStates
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan

LENGTHS = 7, 1, 12


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def run(name: str, *tensors: Tensor, dim: int, **options: Any) -> Tensor:
    """A function over the rows of `tensors`, which lie one after another along `dim`, in two steps that are cut inside of each row."""
    step, states = RecurrentStep(), MixerStates(0)
    function = step.functions[name]
    step.run(states, lambda: function(*tensors, **options))
    memory = StateMemory(tuple(states.shapes.values()), 2 * len(LENGTHS))
    starts = [sum(LENGTHS[:row]) for row in range(len(LENGTHS))]
    cuts = [length // 2 for length in LENGTHS]
    parts: dict[int, list[Tensor]] = {row: [] for row in range(len(LENGTHS))}
    for is_first in (True, False):
        spans = [(0, cut) if is_first else (cut, length) for cut, length in zip(cuts, LENGTHS, strict=True)]
        rows = [row for row, (start, stop) in enumerate(spans) if stop > start]
        places = torch.cat([torch.arange(starts[row] + spans[row][0], starts[row] + spans[row][1]) for row in rows])
        counts = [spans[row][1] - spans[row][0] for row in rows]
        plan = StatePlan.of(
            np.cumsum([0, *counts]).astype(np.int32),
            [row if spans[row][0] else NO_SLOT for row in rows],
            [((count, row),) for row, count in zip(rows, counts, strict=True)],
        )
        step.states = StepStates(memory, plan)

        def some(each: Any, places: Tensor = places) -> Any:
            is_long = isinstance(each, Tensor) and each.ndim > dim and each.shape[dim] == sum(LENGTHS)
            return each.index_select(dim, places) if is_long else each

        given = [some(each) for each in tensors]
        others = {name: some(value) for name, value in options.items()}
        out = step.run(states, lambda given=given, others=others: function(*given, **others))  # type: ignore[misc]
        out = out[0] if isinstance(out, tuple) else out
        for row, part in zip(rows, out.split(counts, dim), strict=True):
            parts[row].append(part)
    return torch.cat([torch.cat(parts[row], dim) for row in range(len(LENGTHS))], dim)


def expected(function: Any, *tensors: Tensor, dim: int, **options: Any) -> Tensor:
    def parts(each: Any) -> list[Any]:
        is_long = isinstance(each, Tensor) and each.ndim > dim and each.shape[dim] == sum(LENGTHS)
        return list(each.split(LENGTHS, dim)) if is_long else [each] * len(LENGTHS)

    rows = zip(*map(parts, tensors), strict=True)
    named = [{name: parts(value)[row] for name, value in options.items()} for row in range(len(LENGTHS))]
    outs = [function(*row, **others) for row, others in zip(rows, named, strict=True)]
    return torch.cat([out[0] if isinstance(out, tuple) else out for out in outs], dim)


TOTAL = sum(LENGTHS)


@pytest.mark.parametrize("activation", [None, "silu", "gelu"])
def test_convolutions(activation: str | None) -> None:
    x, weight, bias = randn(1, 6, TOTAL), randn(6, 4, seed=1), randn(6, seed=2)
    found = run("causal_conv1d_fn", x, weight, bias, dim=2, activation=activation)
    stock = expected(modeling_mamba.causal_conv1d_fn, x, weight, bias, dim=2, activation=activation)
    torch.testing.assert_close(found, stock)


@pytest.mark.parametrize("is_normalized", [True, False])
def test_gated_delta_rules(is_normalized: bool) -> None:
    q, k, v = randn(1, TOTAL, 2, 8), randn(1, TOTAL, 2, 8, seed=1), randn(1, TOTAL, 4, 6, seed=2)
    if not is_normalized:
        q, k = q / 8, k / 8
    options = {
        "g": -randn(1, TOTAL, 4, seed=3).abs(),
        "beta": randn(1, TOTAL, 4, seed=4).sigmoid(),
        "use_qk_l2norm_in_kernel": is_normalized,
    }
    stock = expected(modeling_qwen3_next.torch_chunk_gated_delta_rule, q, k, v, dim=1, **options)
    found = run("torch_chunk_gated_delta_rule", q, k, v, dim=1, **options)
    torch.testing.assert_close(found, stock, atol=1e-5, rtol=1e-4)


def test_kimi_delta_attention() -> None:
    q, k, v = (randn(1, TOTAL, 2, 8, seed=seed) for seed in range(3))
    options = {
        "g": -randn(1, TOTAL, 2, 8, seed=3).abs(),
        "beta": randn(1, TOTAL, 2, seed=4).sigmoid(),
        "use_qk_l2norm_in_kernel": True,
    }
    stock = modeling_kimi_linear.recurrent_kimi_delta_attention
    found = run("chunk_kimi_delta_attention", q, k, v, dim=1, **options)
    given = {"initial_state": None, "output_final_state": False, **options}
    torch.testing.assert_close(found, expected(stock, q, k, v, dim=1, **given), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("limit", [(0.0, float("inf")), (0.3, 0.9)])
def test_the_scan_of_mamba_2(limit: tuple[float, float]) -> None:
    x, dt = randn(1, TOTAL, 4, 6), randn(1, TOTAL, 4, seed=1)
    a, b, c = -randn(4, seed=2).abs(), randn(1, TOTAL, 2, 8, seed=3), randn(1, TOTAL, 2, 8, seed=4)
    options = {"D": randn(4, seed=5), "dt_bias": randn(4, seed=6), "dt_softplus": True, "dt_limit": limit}
    stock = expected(modeling_mamba2.mamba2_chunk_scan, x, dt, a, b, c, dim=1, chunk_size=16, **options)
    found = run("mamba2_chunk_scan", x, dt, a, b, c, dim=1, chunk_size=16, **options)
    torch.testing.assert_close(found, stock, atol=1e-5, rtol=1e-4)


def test_the_scan_of_mamba() -> None:
    x, dt, z = randn(1, 6, TOTAL), randn(1, 6, TOTAL, seed=1), randn(1, 6, TOTAL, seed=2)
    a, b, c = -randn(6, 8, seed=3).abs(), randn(1, 8, TOTAL, seed=4), randn(1, 8, TOTAL, seed=5)
    options = {"D": randn(6, seed=6), "delta_bias": randn(6, seed=7), "z": z, "delta_softplus": True}
    stock = expected(modeling_mamba.mamba_selective_scan, x, dt, a, b, c, dim=2, **options)
    found = run("mamba_selective_scan", x, dt, a, b, c, dim=2, **options)
    torch.testing.assert_close(found, stock, atol=1e-5, rtol=1e-4)
