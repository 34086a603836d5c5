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


# Prints what the kernels of the constants in the arguments return, and how many addresses their machine code has.
CONSTANTS = """
import sys
from rtlang_kernels.host.numba_jit import kernel

def make(constant):
    @kernel(is_exact=True)
    def add(x):
        return x + constant
    return add

kernels = [make(int(argument)) for argument in sys.argv[1:]]
results = [compiled(0) for compiled in kernels]
code = [next(iter(compiled.overloads.values())) for compiled in kernels]
print(*results, len({each.library.get_pointer_to_function(each.fndesc.llvm_func_name) for each in code}))
"""


def test_kernels_that_different_processes_cached_keep_apart(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(CONSTANTS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT / "kernels")}

    def run(*constants: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "made.py"), *constants]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout.split()

    # Each process would give its first kernel the same name.
    assert run("1") == ["1", "1"]
    assert run("2") == ["2", "1"]
    assert run("1", "2") == ["1", "2", "2"]
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 2  # all from the disk cache


def test_a_kernel_is_named_after_its_constants() -> None:
    def make(constant: Any, digest: int = 0) -> Any:
        @kernel()
        def add(x: Any) -> Any:
            return x + constant if digest >= 0 else x

        return add

    names = [make(constant).__qualname__ for constant in (1, 2, 1.0, (1, 2), make(1), make(2))]
    assert len(set(names)) == len(names)
    assert make(1, digest=7).__qualname__ == make(1).__qualname__
    with pytest.raises(TypeError, match=r"constant = \[1\]: expected a number"):
        make([1])
