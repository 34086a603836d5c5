"""Compile kernels for GPUs that are not present, and read the resources that the compiled code needs.

Ahead-of-time compilation shows whether a configuration builds, how many registers and how much shared memory it takes, whether registers
spill to memory, and whether subnormal numbers survive where they must; nothing is run. Must run in a process without TRITON_INTERPRET.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rtlang_kernels.planning.tile_sizes import GFX942, SM_80, SM_90, SM_100
from rtlang_kernels.triton.aot.variant import CompiledVariant

TARGETS = {
    SM_80: GPUTarget("cuda", 80, 32),
    SM_90: GPUTarget("cuda", 90, 32),
    SM_100: GPUTarget("cuda", 100, 32),
    GFX942: GPUTarget("hip", "gfx942", 64),
}
SHARED_LIMIT = {SM_80: 163 << 10, SM_90: 227 << 10, SM_100: 227 << 10, GFX942: 64 << 10}  # bytes per program

SIZES = ("num_outputs", "num_inputs")  # of layers, multiples of 16 besides pointers and strides


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Resources of one variant. Shared memory is per program; `matrix` counts matrix instructions.

    Attributes:
        spill_bytes: local memory per thread, spilled registers included; must be 0.
        flushed: number of forbidden instructions that flush subnormal numbers (`CompiledVariant.flush_pattern`).
    """

    target: str
    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    matrix: str
    flushed: int
    fits: bool


def compile_variant(variant: CompiledVariant, arch: str) -> CompileReport:
    """Compile one variant for a target and read its resources."""
    names = variant.kernel.arg_names
    unknown = set(variant.types) ^ (set(names) - set(variant.constants))
    assert not unknown, f"{variant.name}: {sorted(unknown)}"
    aligned = [
        name for name in names if variant.types.get(name, "").startswith("*") or "stride" in name or name in SIZES
    ]
    source = ASTSource(
        fn=variant.kernel,
        signature={name: variant.types.get(name, "constexpr") for name in names},
        constexprs={(index,): variant.constants[name] for index, name in enumerate(names) if name in variant.constants},
        attrs={(index,): [["tt.divisibility", 16]] for index, name in enumerate(names) if name in aligned},
    )
    built = triton.compile(
        source, target=TARGETS[arch], options={"num_warps": 4, "enable_fp_fusion": True} | variant.options
    )
    shared = int(built.metadata.shared)
    if arch == GFX942:
        text = built.asm["amdgcn"]
        registers, spill = _number(r"\.vgpr_count:\s+(\d+)", text), 4 * _number(r"\.vgpr_spill_count:\s+(\d+)", text)
        matrix = f"mfma {text.count('v_mfma')}"
        flushed = len(re.findall(r"float_denorm_mode_\w+ 0", text)) if variant.flush_pattern else 0
    else:
        usage = _cubin_usage(built.asm["cubin"])
        registers, spill = _number(r"REG:(\d+)", usage), _number(r"STACK:(\d+)", usage)
        ptx = built.asm["ptx"]
        counts = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync", "cp.async": "cp.async.cg"}
        flushed = len(re.findall(variant.flush_pattern, ptx)) if variant.flush_pattern else 0
        matrix = " ".join(f"{label} {ptx.count(word)}" for label, word in counts.items() if word in ptx)
    fits = flushed == 0 and spill == 0 and shared <= SHARED_LIMIT[arch]
    return CompileReport(arch, variant.name, registers, spill, shared, matrix, flushed, fits)


def _cubin_usage(cubin: bytes) -> str:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(tool), "-res-usage", file.name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, pattern
    return int(found.group(1))
