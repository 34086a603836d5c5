"""The command `python -m rtlang_bench.device`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rtlang.bench.machine import DEVICE_PACKAGES, package_versions
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.model.gpu.accelerator import accelerator_for
from rtlang_bench.command import command
from rtlang_bench.device import run
from rtlang_kernels_bench.output import Output, watchdog


@with_settings(RuntimeConfig, "settings")
def bench_device(
    settings: dict[str, Any],
    quick: Annotated[bool, typer.Option(help="Small sizes: shows that all of it runs.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to this file, one JSON object per line.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the printed output to this file.")] = None,
    budget_s: Annotated[float, typer.Option(min=1, help="Start no new measurement after this many seconds.")] = 480.0,
) -> None:
    """Check the GPU's output against the CPU's, then measure its kernels and the decoding of a random 8B Llama."""
    with one_line_errors():
        config = RuntimeConfig(**{"device": "cuda"} | settings)
        if config.device != "cuda":
            reason = (
                "the CPU is measured by `rtlang bench`"
                if config.device == "cpu"
                else "interpreted kernels cannot be benchmarked"
            )
            raise CommandError(f"--device {config.device}: {reason}; expected cuda")
        if not math.isfinite(budget_s):
            raise CommandError(f"--budget-s {budget_s}: expected a finite number")
        missing = [name for name, number in package_versions(DEVICE_PACKAGES).items() if number is None]
        if missing:
            raise CommandError(f"packages are not installed: {', '.join(missing)}")
        accelerator_for(config.device)  # fails before the output of an earlier run is overwritten
        try:
            output = Output(out, json_file)
        except (OSError, ValueError) as error:
            raise CommandError(f"--out or --json: {error}") from error
        with output, watchdog(output, budget_s), output.part("run"):
            run.run(config, output, is_quick=quick, budget_s=budget_s)
        if output.num_failed:
            raise CommandError(f"{output.num_failed} parts failed, listed above")


app = command(bench_device)

if __name__ == "__main__":
    app()
