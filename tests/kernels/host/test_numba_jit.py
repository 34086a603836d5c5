"""Compilation without a cache directory, and the GPU side without numba."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import pytest

from rtlang_kernels.host.numba_jit import HAS_NUMBA, kernel

ROOT = Path(__file__).parents[3]
# The GPU benchmark, in the interpreter, in a process that finds no libraries except torch, triton and numpy.
PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite", "rtlang", "rtlang_grammars", "transformers", "pydantic"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from rtlang_kernels_bench import __main__ as bench, device_bench, device_cases
from rtlang_kernels.host.numba_jit import HAS_NUMBA
import torch

assert not HAS_NUMBA
device_cases.CALLS_PER_GRAPH = 2
cpu, ceilings = torch.device("cpu"), device_cases.Ceilings(1e12, 1e14, 2.0, 1 << 16)
measure = lambda functions: ([function() for function in functions], (10.0, 0.0))[1]
shapes = [device_cases.tree("1,3_48,8"), device_cases.TreeShape((1, 2), (16, 8), 8)]
lines = list(device_bench.attention_lines(shapes, (4, 2, 16), torch.float32, cpu, ceilings, measure))
lines.append(device_bench.sampling_line(2, 100, True, "", {"top_k": 5}, torch.float32, cpu, ceilings, measure))
print(len(lines), max(line.error for line in lines) < 1e-5)
assert bench.main(["--device", "cuda"]) == 2
"""


def test_functions_are_compiled_here() -> None:
    assert HAS_NUMBA


def test_a_kernel_works_where_no_cache_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def without_cache(*args: Any, **options: Any) -> Any:
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", without_cache)

    @kernel()
    def twice(x: Any) -> Any:
        return x * 2

    assert twice(21) == 42


@pytest.mark.slow
@pytest.mark.skipif(find_spec("triton") is None, reason="there is no triton for this platform")
def test_the_benchmark_of_a_gpu_needs_torch_triton_and_numpy_only() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "RTLANG_KERNELS": "triton", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment
        | {"PYTHONPATH": os.pathsep.join((str(ROOT / "kernels"), str(ROOT / "kernels" / "benchmarks")))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "True"]
