"""Compile kernels for GPUs that are not present, and read the resources that the compiled code needs.

Ahead-of-time compilation shows whether a configuration builds, how many registers and how much shared memory it takes, whether registers
spill to memory, and whether subnormal numbers survive where they must; nothing is run. Must run in a process without TRITON_INTERPRET.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import triton
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

from rtlang_kernels.planning.tile_sizes import GFX942
from rtlang_kernels.triton.aot.machine_code import product_loops, run_tool
from rtlang_kernels.triton.aot.recording import TARGETS
from rtlang_kernels.triton.aot.variant import CompiledVariant


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Resources of one variant. Shared memory is per program.

    Attributes:
        matrix: counts of instructions on matrices, of loads ahead, and of native conversions of float8.
        spill_bytes: local memory per thread, spilled registers included; must be 0.
        buffers: of each tile that loops load ahead, on NVIDIA: how many there are in shared memory.
        waits: of each wait for loads in a loop, on NVIDIA: how many loads may be in flight after it. 0 means that loading and computing
            alternate.
        loops: of kernels in Gluon, on NVIDIA: the order of products and exponentials (`machine_code.product_loops`).
        hasty: number of accesses to memory before a kernel that starts early waits; must be 0.
        flushed: number of forbidden instructions that flush subnormal numbers (`CompiledVariant.flush_pattern`).
    """

    target: str
    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    matrix: str
    flushed: int
    hasty: int
    buffers: tuple[int, ...]
    waits: tuple[int, ...]
    loops: list[list[str]]
    fits: bool


def compile_variant(variant: CompiledVariant, arch: str) -> CompileReport:
    """Compile one variant for a target and read its resources."""
    names = variant.kernel.arg_names
    constants = {(names.index(name),): value for name, value in variant.constants.items()}
    language = GluonASTSource if isinstance(variant.kernel, GluonJITFunction) else ASTSource
    source = language(variant.kernel, variant.types, constants, variant.attributes)
    built = triton.compile(source, target=TARGETS[arch].triton, options=variant.options)
    shared = int(built.metadata.shared)
    loops: list[list[str]] = []
    if arch == GFX942:
        text = built.asm["amdgcn"]
        registers, spill = _number(r"\.vgpr_count:\s+(\d+)", text), 4 * _number(r"\.vgpr_spill_count:\s+(\d+)", text)
        matrix, hasty = f"mfma {text.count('v_mfma')}", 0
        flushed = len(re.findall(r"float_denorm_mode_\w+ 0", text)) if variant.flush_pattern else 0
    else:
        usage = run_tool("cuobjdump", "-res-usage", built.asm["cubin"])
        if language is GluonASTSource:
            loops = product_loops(run_tool("nvdisasm", "-c", built.asm["cubin"]))
        registers, spill = _number(r"REG:(\d+)", usage), _number(r"STACK:(\d+)", usage)
        ptx = built.asm["ptx"]
        counts = {"wgmma": "wgmma.mma_async", "tcgen05": "tcgen05.mma", "mma": "mma.sync", "cp.async": "cp.async.cg"}
        counts |= {"cvt": "cvt.rn.f16x2.e4m3x2"}
        flushed = len(re.findall(variant.flush_pattern, ptx)) if variant.flush_pattern else 0
        hasty = num_hasty(ptx)
        matrix = " ".join(f"{label} {ptx.count(word)}" for label, word in counts.items() if word in ptx)
    buffers, waits = load_pipeline(built.asm["ttgir"])
    fits = flushed == hasty == spill == 0 and shared <= TARGETS[arch].shared_bytes
    return CompileReport(
        arch, variant.name, registers, spill, shared, matrix, flushed, hasty, buffers, waits, loops, fits
    )


def num_hasty(ptx: str) -> int:
    """Accesses to global memory before the wait of a kernel that starts early; all of them if it starts early and does not wait."""
    before, wait, _ = ptx.partition("griddepcontrol.wait")
    if not wait and "griddepcontrol" not in ptx:
        return 0
    return len(re.findall(r"\b(?:ld|st|atom|red|cp\.async)\.[a-z0-9.]*global", before))


def load_pipeline(ttgir: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`buffers` and `waits` of a report, from triton's code for GPUs."""
    buffers = re.findall(r"ttg\.local_alloc : \(\) -> !ttg\.memdesc<(\d+)x\d+x\d+x", ttgir)
    waits: list[int] = []
    loops: list[int] = []  # columns of the loops around a line
    for line in ttgir.splitlines():
        column = len(line) - len(line.lstrip())
        while loops and column <= loops[-1]:
            loops.pop()
        found = re.search(r"ttg\.async_wait .*\{num = (\d+)", line)
        if found and loops:
            waits.append(_number(r"num = (\d+)", found.group()))
        if " scf.for " in line:
            loops.append(column)
    return tuple(map(int, buffers)), tuple(waits)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, pattern
    return int(found.group(1))
