"""`python -m rtlang_kernels.triton.aot`: compile every kernel configuration for GPUs that are not present.

Prints registers, spills and shared memory of each. Exits with status 1 if any configuration does not fit its target.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import triton

from rtlang_kernels.triton.aot.cases import cases
from rtlang_kernels.triton.aot.compiler import compile_variant
from rtlang_kernels.triton.aot.recording import TARGETS, record


def main(arguments: list[str] | None = None) -> int:
    """Compile the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m rtlang_kernels.triton.aot", description=__doc__)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="may be repeated; all by default")
    parser.add_argument(
        "--only", action="append", help="variants whose name contains this; may be repeated; all by default"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the reports to a file")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET") == "1":
        sys.stderr.write("TRITON_INTERPRET is set: nothing can be compiled in this process\n")
        return 2
    reports = []
    write = sys.stdout.write
    write(f"triton {triton.__version__}\n{'target':<8} {'kernel':<48} {'regs':>5} {'spill':>6} {'shared':>7}  matrix\n")
    for arch in options.target or sorted(TARGETS):
        for variant in record(arch, cases(arch)):
            if any(part in variant.name for part in options.only or [""]):
                report = compile_variant(variant, arch)
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
