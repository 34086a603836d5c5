"""What is special about the compiled recurrence: blocks, threads, inputs that it leaves to the reference. Results: test_recurrence.py."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rtlang_kernels.contract.state_plan import NO_SLOT
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of
from rtlang_kernels.cpu.recurrence import causal_conv, gated_recurrence, selective_scan, state_work
from rtlang_kernels.host.processor import processor
from rtlang_kernels.reference import recurrence as reference
from tests.support.kernels.fused_steps import torch_threads
from tests.support.kernels.recurrence_cases import Case, Rows, check, conv_case, random_rows, recurrence_case, scan_case

ROOT = Path(__file__).parents[4]


def both(case: Case, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and states."""
    states = case.states.clone()
    return case.run(rows.plan(), states), states.nan_to_num(7.0)


@pytest.mark.parametrize("is_delta", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_size_of_blocks_changes_no_bit(is_delta: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(np.random.default_rng(0), 5, 9)
    case = recurrence_case(rows, (2, 2), (20, 128), torch.bfloat16, is_delta=is_delta)
    found = []
    for lanes in (128, 16):
        monkeypatch.setattr(gated_recurrence, "lanes_of", lambda v_dim, lanes=lanes: lanes)
        found.append(both(case, rows))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_lanes_divide_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_avx512, most in ((True, 128), (False, 16)):
        own = replace(processor(), has_avx512=has_avx512)
        monkeypatch.setattr(gated_recurrence, "processor", lambda own=own: own)
        for v_dim in (*range(1, 70), 128, 256):
            lanes = gated_recurrence.lanes_of.__wrapped__(v_dim)
            assert v_dim % lanes == 0
            assert lanes == most or v_dim % (2 * lanes) != 0


def test_kernels_can_be_called_by_address() -> None:
    """The types that are precompiled, and that a fused step calls, are those of calls from Python."""
    rows = random_rows(np.random.default_rng(6), 2, 3)
    kernels: list[tuple[Any, tuple[Any, ...], Case]] = [
        (
            gated_recurrence.recurrence_kernel(0, 16, 1),
            gated_recurrence.RECURRENCE_TYPES,
            recurrence_case(rows, (1, 1), (16, 16), torch.float32),
        ),
        (causal_conv.conv_kernel(0, 64, 4, 1), causal_conv.CONV_TYPES, conv_case(rows, 64, 4, torch.float32)),
        (selective_scan.scan_kernel(0, 8, 16), selective_scan.SCAN_TYPES, scan_case(rows, 40, 16, torch.float32)),
    ]
    for kernel, arguments, case in kernels:
        assert address_of(kernel, arguments) > 0
        check(case, rows)
        assert kernel.signatures == [arguments]


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_work, "SPLIT_NS", 0)
    for rows in (random_rows(np.random.default_rng(1), 6, 9), Rows([1], [NO_SLOT], [[(1, 0)]], 1)):
        case, found = recurrence_case(rows, (2, 4), (64, 48), torch.bfloat16), []
        for count in (1, threads):
            with torch_threads(count):
                found.append(both(case, rows))
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def strided(x: torch.Tensor) -> torch.Tensor:
    """The same numbers, every second one in memory."""
    return torch.stack([x, torch.full_like(x, float("nan"))], dim=-1)[..., 0]


@pytest.mark.parametrize("is_keyed", [False, True])
def test_any_strides_of_the_inputs(is_keyed: bool) -> None:
    rows = random_rows(np.random.default_rng(2), 4, 7)
    case = recurrence_case(rows, (2, 4), (64, 48), torch.bfloat16, is_keyed=is_keyed)
    want = both(case, rows)
    for i in range(len(case.tensors)):
        tensors = [strided(each) if j == i else each for j, each in enumerate(case.tensors)]
        assert all(torch.equal(a, b) for a, b in zip(both(replace(case, tensors=tensors), rows), want, strict=True))


def test_beta_may_have_another_dtype() -> None:
    rows = random_rows(np.random.default_rng(3), 4, 7)
    case = recurrence_case(rows, (2, 4), (64, 48), torch.bfloat16)
    want = both(case, rows)
    for dtype in (torch.float32, torch.float64):
        tensors = [*case.tensors[:4], case.tensors[4].to(dtype)]
        assert all(torch.equal(a, b) for a, b in zip(both(replace(case, tensors=tensors), rows), want, strict=True))


def test_inputs_of_several_dtypes() -> None:
    rows = random_rows(np.random.default_rng(4), 3, 5)
    for i in range(3):
        case = recurrence_case(rows, (2, 2), (16, 16), torch.float32)
        case.tensors[i] = case.tensors[i].bfloat16()
        check(case, rows)


def test_other_states_use_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    original = reference.gated_recurrence

    def noted(*args: Any) -> torch.Tensor:
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(reference, "gated_recurrence", noted)
    rows = random_rows(np.random.default_rng(4), 3, 5)
    case = recurrence_case(rows, (2, 2), (16, 16), torch.float32)
    check(case, rows)
    assert not calls
    check(case, rows, torch.stack([case.states] * 2, dim=-1)[..., 0])
    assert len(calls) == 1


def test_states_may_lie_apart_in_memory() -> None:
    """Slots of one layer in memory that all layers share."""
    rows = random_rows(np.random.default_rng(5), 4, 7)
    case = recurrence_case(rows, (2, 2), (16, 16), torch.float32)
    wide = torch.full((rows.num_slots, 3, *case.states.shape[1:]), float("nan"))
    check(case, rows, wide[:, 1])
    assert bool(wide[:, ::2].isnan().all())


@pytest.mark.long
@pytest.mark.parametrize("features", ["+sse2", "+avx,+avx2,+fma"])
def test_processors_without_avx512(features: str, tmp_path: Path) -> None:
    """All recurrent operations, compiled for an older processor and run here."""
    code = """
import pytest, sys
from rtlang_kernels.host.processor import processor
assert not processor().has_avx512
sys.exit(pytest.main(["-n0", "-q", "-p", "no:cacheprovider", "tests/kernels/reference/test_recurrence.py", "-k", "cpu"]))
"""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": features,
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("", "kernels", "grammars")),
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
