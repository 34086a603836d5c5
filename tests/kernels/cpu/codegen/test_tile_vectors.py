"""Products in matrix tiles: the instructions for a processor that has them, and their emulation against the documented arithmetic."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from llvmlite import binding, ir
from numpy.typing import NDArray

from rtlang_kernels.contract.fused_step import BLOCK
from rtlang_kernels.cpu.codegen.linear_vectors import BFLOAT16, STEP, multiply_tile
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED, Amx, close_tiles, multiply_in_tiles, open_tiles
from rtlang_kernels.cpu.codegen.vector_builder import INT64
from rtlang_kernels.cpu.linear import pack_blocks
from rtlang_kernels.host.numba_jit import kernel

ROOT = Path(__file__).parents[4]
IS_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86")
DIGEST = source_digest()
INSTRUCTION = re.compile(r"^\t(tile\w+|ldtilecfg|tdp\w+|call\w*)\b", re.M)


def counts(assembly: str) -> dict[str, int]:
    found = INSTRUCTION.findall(assembly)
    return {name: found.count(name) for name in sorted(set(found))}


def check(assembly: str, halves: int) -> None:
    """Sums stay in their tiles: they are cleared and stored once, however often the compiler repeats the step inside."""
    made, sums = counts(assembly), 2 * halves
    steps = made["tdpbf16ps"] // sums
    assert steps >= 2  # the loop, and inputs that do not fill a tile
    assert made == {
        "ldtilecfg": 1,
        "tdpbf16ps": sums * steps,
        "tileloadd": (halves + 2) * steps,
        "tilerelease": 1,
        "tilestored": sums,
        "tilezero": sums,
    }


@IS_X86
@pytest.mark.parametrize("halves", [1, 2])
def test_sums_stay_in_tiles_on_a_processor_that_has_them(halves: int) -> None:
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INT64] * 8), "block")
    builder = ir.IRBuilder(function.append_basic_block())
    tiles = Amx(function.args[-1])
    tiles.configure(builder)
    multiply_in_tiles(builder, AMX, halves, 4, 3, *function.args)
    tiles.release(builder)
    builder.ret_void()
    parsed = binding.parse_assembly(str(module))
    machine = binding.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine("sapphirerapids", opt=3)
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(parsed, passes)
    check(machine.emit_assembly(parsed), halves)


@IS_X86
def test_whole_kernels_compile_for_a_processor_with_tiles(tmp_path: Path) -> None:
    """Compiled, not run. A tile has 16 rows in one kernel and 32 in the other."""
    code = """
import torch
from rtlang_kernels.cpu.linear import _INT, code_for, linear_kernel, tile_code
for rows in (32, 16):
    compiled = linear_kernel(tile_code(code_for(torch.bfloat16, torch.bfloat16)), rows, 4, 3)
    compiled.compile((_INT,) * 16)
    print(compiled.inspect_asm((_INT,) * 16).partition(".cfi_endproc")[0], end="---")
"""
    features = "avx,avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx512vnni,amx-tile,amx-bf16,amx-int8"
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),  # code from a cache cannot be read
        "NUMBA_CPU_NAME": "sapphirerapids",
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in features.split(",")),
        "PYTHONPATH": str(ROOT / "kernels"),
    }
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    first, second, _ = found.stdout.split("---")
    for assembly, halves in ((first, 2), (second, 1)):
        check(re.sub(r"\tcallq\t\*", "", assembly), halves)  # the end of a line is called by address


@kernel(is_exact=True)
def pairs_16(x: Any, stride: Any, count: Any, weights: Any, num_steps: Any, sums: Any) -> None:
    if DIGEST < 0:
        return
    work = open_tiles(count, EMULATED, 1)
    multiply_tile(x, stride, count, weights, weights, num_steps, sums, work, BFLOAT16, 0, 1, 16, 4, 3, EMULATED)
    close_tiles(work, EMULATED)


@kernel(is_exact=True)
def pairs_32(x: Any, stride: Any, count: Any, weights: Any, num_steps: Any, sums: Any) -> None:
    if DIGEST < 0:
        return
    work = open_tiles(count, EMULATED, 2)
    multiply_tile(x, stride, count, weights, weights, num_steps, sums, work, BFLOAT16, 0, 1, 32, 4, 3, EMULATED)
    close_tiles(work, EMULATED)


def documented(x: torch.Tensor, weight: torch.Tensor) -> NDArray[np.float32]:
    """Sums as the manual of the instruction describes them: of 16 pairs each, first the chains of either half, then their sum.

    Of numbers of similar size, whose products and sums float64 holds exactly, so that each is rounded once.
    """
    padding = (0, -x.shape[1] % 32)
    inputs, weights = (torch.nn.functional.pad(each, padding).double().numpy() for each in (x, weight))
    total = np.zeros((len(x), len(weight)), np.float32)
    for first in range(0, inputs.shape[1], 32):
        chains = []
        for half in range(2):
            chain = np.zeros_like(total)
            for i in range(first + half, first + 32, 2):
                chain = (chain.astype(np.float64) + np.outer(inputs[:, i], weights[:, i])).astype(np.float32)
            chains.append(chain)
        total = total + (chains[0] + chains[1])
    return total


@pytest.mark.parametrize("num_inputs", [32, 2, 30, 96, 130])
@pytest.mark.parametrize("num_rows", [1, 7, 16, 17, 31, 32])
def test_emulated_products_of_pairs_are_as_documented(num_rows: int, num_inputs: int) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    x, weight = (torch.randn(count, num_inputs, generator=generator).bfloat16() for count in (num_rows, BLOCK))
    sums, blocks = torch.full((34, BLOCK), 7.0), pack_blocks(weight)
    run = pairs_16 if num_rows <= 16 else pairs_32
    run(x.data_ptr(), 2 * num_inputs, num_rows, blocks.data_ptr(), num_inputs // 2, sums.data_ptr())
    assert sums.stride(0) * 4 == STEP
    assert np.array_equal(sums[:num_rows].numpy(), documented(x, weight))
    assert bool((sums[num_rows:] == 7).all())


def test_denormal_numbers_are_zeros() -> None:
    x, weight, sums = torch.zeros(2, 32).bfloat16(), torch.zeros(BLOCK, 32).bfloat16(), torch.ones(2, BLOCK)
    x[0, 0], weight[0, 0] = 2.0**-127, 2.0**100  # an input, whose product would be a normal number
    x[1, 5], weight[3, 5] = 2.0**-100, -(2.0**-30)  # a product
    weight[4, 5] = 2.0**-26  # the least normal product
    blocks = pack_blocks(weight)
    pairs_16(x.data_ptr(), 64, 2, blocks.data_ptr(), 16, sums.data_ptr())
    assert sums.nonzero().tolist() == [[1, 4]]
    assert float(sums[1, 4]) == 2.0**-126
