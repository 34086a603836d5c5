"""`python -m rtlang_kernels.triton_ops.aot`: compile every kernel of the table for a GPU that is not there, and read what it needs.

Compilation ahead of time tells whether a configuration builds, how many registers and how much shared memory it takes, whether
registers spill to memory, and whether subnormal numbers survive where they must, without running anything. `aot_table.variants` is the
whole table. Exits with status 1 if any variant does not fit. Must run in a process without TRITON_INTERPRET.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rtlang_kernels.triton_ops.aot_table import Variant, variants
from rtlang_kernels.triton_ops.tiles import GFX942, SM_80, SM_90

TARGETS = {
    SM_80: GPUTarget("cuda", 80, 32),
    SM_90: GPUTarget("cuda", 90, 32),
    GFX942: GPUTarget("hip", "gfx942", 64),
}
SHARED_LIMIT = {SM_80: 163 << 10, SM_90: 227 << 10, GFX942: 64 << 10}  # bytes that one program may take


@dataclass(frozen=True, slots=True)
class Report:
    """What one variant needs. Shared memory is per program; `matrix` counts matrix instructions.

    Attributes:
        spill_bytes: per thread, of spilled registers and of whatever else lies in local memory; there must be none.
        flushed: instructions that take the smallest numbers for zero where that would be wrong (`Variant.keeps_small`).
    """

    target: str
    name: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    matrix: str
    flushed: int
    fits: bool


def compiled(variant: Variant, arch: str) -> Report:
    """Compile one variant for a target and read its resources."""
    names = variant.kernel.arg_names
    unknown = set(variant.types) ^ (set(names) - set(variant.constants))
    assert not unknown, f"{variant.name}: {sorted(unknown)}"
    aligned = [name for name in names if variant.types.get(name, "").startswith("*") or "stride" in name]
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
        flushed = len(re.findall(r"float_denorm_mode_\w+ 0", text)) if variant.keeps_small else 0
    else:
        usage = _cubin_usage(built.asm["cubin"])
        registers, spill = _number(r"REG:(\d+)", usage), _number(r"STACK:(\d+)", usage)
        ptx = built.asm["ptx"]
        counts = {"wgmma": "wgmma.mma_async", "mma": "mma.sync", "cp.async": "cp.async.cg"}
        flushed = len(re.findall(variant.keeps_small, ptx)) if variant.keeps_small else 0
        matrix = " ".join(f"{label} {ptx.count(word)}" for label, word in counts.items() if word in ptx)
    fits = flushed == 0 and spill == 0 and shared <= SHARED_LIMIT[arch]
    return Report(arch, variant.name, registers, spill, shared, matrix, flushed, fits)


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


def main(arguments: list[str] | None = None) -> int:
    """Compile the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_kernels.triton_ops.aot", description=__doc__)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="may be repeated; all by default")
    parser.add_argument("--only", default="", help="variants whose name contains this")
    parser.add_argument("--json", metavar="FILE", help="also write the reports to a file")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") == "1":
        sys.stderr.write("TRITON_INTERPRET is set: nothing can be compiled in this process\n")
        return 2
    reports = []
    write = sys.stdout.write
    write(f"triton {triton.__version__}\n{'target':<8} {'kernel':<48} {'regs':>5} {'spill':>6} {'shared':>7}  matrix\n")
    for arch in options.target or sorted(TARGETS):
        for variant in variants(arch):
            if options.only in variant.name:
                report = compiled(variant, arch)
                reports.append(report)
                write(
                    f"{arch:<8} {report.name:<48} {report.registers:>5} {report.spill_bytes:>6} {report.shared_bytes:>7}  "
                    f"{report.matrix}{'' if report.fits else '  DOES NOT FIT'}\n"
                )
                sys.stdout.flush()
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(report) for report in reports], indent=1), encoding="utf-8")
    return 0 if all(report.fits for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
