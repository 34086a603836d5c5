"""Layers of few bits in matrix tiles: the bits of the definition and of vectors, with emulated instructions, and with those of the
processor where it has them."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rtlang_kernels.contract.low_bit import HeldWeight
from rtlang_kernels.cpu import low_bit_linear as layers
from rtlang_kernels.cpu import tiled_low_bit
from rtlang_kernels.cpu.codegen.tile_vectors import AMX, EMULATED
from rtlang_kernels.cpu.linear_tuning import usable_tiles
from rtlang_kernels.cpu.low_bit_linear import JoinedLowBitLinear, LowBitLinear, LowBitProduct
from rtlang_kernels.cpu.tiled_low_bit import tiled_cut
from rtlang_kernels.host.processor import processor
from tests.support.kernels.low_bit_oracle import low_bit_sums
from tests.support.long_tests import is_long
from tests.support.models.low_bit_weights import FORMATS, random_weight

ROOT = Path(__file__).parents[3]
VECTORS = pytest.mark.skipif(
    not processor().has_int8_dot, reason="tiles belong to processors with vpdpbusd on 512 bits"
)
HAS_AMX = pytest.mark.skipif(usable_tiles() != AMX, reason="the processor has no matrix tiles")
IS_X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86")
# Groups of 256, 16, 64 and all inputs; with offsets, a table, zero points, and none of them. A format compiles a kernel.
USUAL = {"q5_k": (70, 31), "nvfp4": (17, 24), "int4 of 64 with zero points": (16,), "int8 of rows": (35, 20)}
ROWS = 16, 17, 20, 33, 50, 70, 137


@pytest.fixture(params=[EMULATED, pytest.param(AMX, marks=HAS_AMX)], ids=["emulated", "processor"])
def kind(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def tiled(layer: LowBitLinear | JoinedLowBitLinear, kind: int) -> LowBitLinear | JoinedLowBitLinear:
    assert isinstance(layer.product, LowBitProduct)
    layer.product.tiles = kind
    return layer


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def defined(weight: HeldWeight, x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(low_bit_sums(weight.format, weight.held, x.float().numpy())).to(x.dtype)


@VECTORS
@pytest.mark.parametrize("name", FORMATS if is_long() else USUAL)
def test_every_bit_is_that_of_the_definition(name: str, kind: int) -> None:
    weight = random_weight(FORMATS[name], 50, 512)
    for dtype in (torch.float32, torch.bfloat16):
        layer = tiled(LowBitLinear.pack([weight], None, False, dtype), kind)
        for num_rows in ROWS if is_long() else USUAL[name]:
            x = noise(num_rows, 512).to(dtype)
            assert torch.equal(layer(x), defined(weight, x))


@VECTORS
def test_largest_products_are_exact(kind: int) -> None:
    weight, x = random_weight(FORMATS["int8 of rows"], 33, 64), torch.ones(35, 64)
    weight.held.codes[:] = 255
    weight.held.codes[1] = 0
    x[::2] = -1
    assert torch.equal(tiled(LowBitLinear.pack([weight], None, False, torch.float32), kind)(x), defined(weight, x))


@VECTORS
def test_numbers_of_inputs_that_fill_no_group(kind: int) -> None:
    for num_inputs in (7, 33, 70):
        weight, x = random_weight(FORMATS["int8 of rows"], 20, num_inputs), noise(35, num_inputs)
        layer = tiled(LowBitLinear.pack([weight], None, False, torch.float32), kind)
        assert torch.equal(layer(x), defined(weight, x))


@VECTORS
def test_gate_residual_and_rows_that_are_no_numbers(kind: int) -> None:
    parts, x = [random_weight(FORMATS["int8 of rows"], 40, 64, seed) for seed in range(2)], noise(35, 64)
    x[5, 3] = float("nan")
    bias, residual = noise(80, seed=1), noise(35, 80, seed=2)
    for dtype in (torch.float32, torch.bfloat16):
        for is_gated in (False, True):
            layer, added = LowBitLinear.pack(parts, bias, is_gated, dtype), [None, None]
            if not is_gated:
                added = [residual.to(dtype), residual.to(dtype)]
            expected = layer(x.to(dtype), added[0])
            found = tiled(layer, kind)(x.to(dtype), added[1])
            assert found is added[1] or is_gated
            assert found[5].isnan().all()
            assert torch.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0))


@VECTORS
def test_joined_layers_and_threads(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "WORTH_THREADS", 0)
    weights = [random_weight(FORMATS[name], size, 256) for name, size in (("int8 of rows", 70), ("nvfp4", 33))]
    parts, x = [LowBitLinear.pack([each], None, False, torch.float32) for each in weights], noise(24, 256)
    joined, expected = tiled(JoinedLowBitLinear(parts), kind), torch.cat([defined(each, x) for each in weights], 1)
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 64):
            torch.set_num_threads(count)
            assert torch.equal(joined(x), expected)
    finally:
        torch.set_num_threads(before)


@VECTORS
def test_few_rows_use_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = random_weight(FORMATS["int8 of rows"], 20, 64)
    layer, used = tiled(LowBitLinear.pack([weight], None, False, torch.float32), EMULATED), []
    real = tiled_low_bit.tiled_low_bit_kernel
    monkeypatch.setattr(layers, "tiled_low_bit_kernel", lambda *args: used.append(args[1]) or real(*args))
    for num_rows in (1, 15, 17):
        x = noise(num_rows, 64)
        assert torch.equal(layer(x), defined(weight, x))
    assert used == [12]


def test_tiles_hold_all_rows_and_have_few_heights() -> None:
    for num_rows in range(16, 2000):
        rows, passes = tiled_cut(num_rows)
        assert rows in (12, 16)
        assert passes * rows <= 128
        assert -(-num_rows // rows) == -(-num_rows // 16)  # no more tiles than needed


@IS_X86
def test_whole_kernels_compile_for_a_processor_with_tiles(tmp_path: Path) -> None:
    """Compiled for a processor with tiles, not run. Groups of 16 inputs are two products of tiles for each chunk."""
    code = """
from numba.core import types
from rtlang_kernels.cpu.codegen.low_bit_vectors import VNNI_512
from rtlang_kernels.cpu.codegen.tile_vectors import AMX
from rtlang_kernels.cpu.low_bit_layout import LowBitLayout
from rtlang_kernels.cpu.tiled_low_bit import tiled_low_bit_kernel
from rtlang_kernels.host.processor import processor
from tests.support.models.low_bit_weights import FORMATS
code = LowBitLayout.of(FORMATS["q6_k"], 512, processor()).code
assert code.products == VNNI_512
compiled = tiled_low_bit_kernel(code, 16, AMX)
compiled.compile((types.int64,) * 22)
print(compiled.inspect_asm((types.int64,) * 22).partition(".cfi_endproc")[0])
"""
    features = "avx,avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,amx-tile,amx-bf16,amx-int8"
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),  # code from a cache cannot be read
        "NUMBA_CPU_NAME": "sapphirerapids",
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in features.split(",")),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "kernels", ROOT))),
    }
    command = [sys.executable, "-c", code]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout
    assembly = re.sub(r"\tcallq\t\*", "", made)  # the end of a line is called by address
    names = re.findall(r"^\t(tile\w+|ldtilecfg|tdp\w+|call\w*)\b", assembly, re.M)
    assert {name: names.count(name) for name in names} == {
        "ldtilecfg": 1,
        "tilezero": 6,  # of two groups: of two chunks before the loop, and one in it
        "tileloadd": 12,
        "tdpbsud": 6,
        "tilestored": 6,
        "tilerelease": 1,
    }
    inside = [block for block in re.split(r"^\.L\w+:", assembly, flags=re.M) if block.count("tdpbsud") == 2][-1]
    assert inside.count("vfmadd") + inside.count("vfmsub") + inside.count("vfnmadd") == 2 * 2 * 16
    assert len(re.findall(r"vmov\w+\t%zmm\d+, [^\n]*\(", inside)) < 8  # most of the 16 sums stay in registers
