"""The compiled configurations of recurrent layers are those that layers launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from triton.runtime.interpreter import GridExecutor

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.triton.aot.recurrence_table import GATED, recurrence_variants
from rtlang_kernels.triton.recurrence.recurrence import causal_conv, gated_recurrence, selective_scan

KINDS = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.int32: "i32"}
DTYPES = {kind: dtype for dtype, kind in KINDS.items()}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Names and arguments of kernels, which do not run."""
    found: list[tuple[str, dict[str, Any]]] = []

    def note(executor: Any, *args: Any, **given: Any) -> None:
        found.append((executor.fn.__name__, dict(zip(executor.arg_names, args, strict=False)) | given))

    monkeypatch.setattr(GridExecutor, "__call__", note)
    return found


def plan(length: int) -> StatePlan:
    return StatePlan.of(np.array([0, length], np.int32), [0], [[(length, 0)]])


def is_compiled(launch: tuple[str, dict[str, Any]]) -> bool:
    """Whether a variant has the kernel, the constants, the options and the types of a launch."""
    kernel, arguments = launch
    constants = {key: value for key, value in arguments.items() if key.isupper()}
    options = {key: arguments[key] for key in ("num_warps", "enable_fp_fusion")}
    types = {
        key: f"*{KINDS[value.dtype]}" if isinstance(value, Tensor) else "fp32" if isinstance(value, float) else "i32"
        for key, value in arguments.items()
        if key.islower() and key not in options
    }
    same = [
        each
        for each in recurrence_variants()
        if (each.constants, each.types, each.options) == (constants, types, options)
    ]
    return [each.name.split()[0] for each in same] == [kernel]


@pytest.mark.parametrize("shape", GATED, ids=lambda shape: shape.family)
def test_gated_recurrence_launches_what_is_compiled(launches: list[tuple[str, dict[str, Any]]], shape: Any) -> None:
    dtype = DTYPES[shape.kind]
    q = torch.zeros(2, shape.num_k_heads, shape.k_dim, dtype=dtype)
    v = torch.zeros(2, shape.num_heads, shape.v_dim, dtype=dtype)
    decay = torch.zeros(2, shape.num_heads, *([shape.k_dim] if shape.has_key_decay else []))
    beta = torch.zeros(2, shape.num_heads, dtype=dtype) if shape.is_delta else None
    states = torch.zeros(1, shape.num_heads, shape.k_dim, shape.v_dim)
    norm_eps = 1e-6 if shape.has_norm else None
    gated_recurrence(q, q, v, decay, beta, states, plan(2), 1.0, shape.is_delta, norm_eps)
    assert list(map(is_compiled, launches)) == [True]


def test_other_layers_launch_what_is_compiled(launches: list[tuple[str, dict[str, Any]]]) -> None:
    for length in (1, 40):
        x = torch.zeros(length, 256, dtype=torch.bfloat16)
        causal_conv(x, x.new_zeros(256, 4), None, x.new_zeros(1, 256, 3), plan(length), "silu")
    x = torch.zeros(2, 8192)
    narrow, states = torch.zeros(2, 16), torch.zeros(1, 8192, 16)
    selective_scan(x, x, states[0], narrow, narrow, x[0], states, plan(2))
    assert [name for name, _ in launches] == ["causal_conv", "causal_conv", "selective_scan"]
    assert all(map(is_compiled, launches))
    launches[0][1]["BLOCK_C"] += 1
    assert not is_compiled(launches[0])
