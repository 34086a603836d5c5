"""The command `python -m rtlang_bench.arrivals`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rtlang.console.bench.report_output import check_json_path, write_json
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang_bench.arrivals import run
from rtlang_bench.command import command, progress
from rtlang_bench.figure import Figure


@with_settings(RuntimeConfig, "settings")
def bench_arrivals(
    settings: dict[str, Any],
    workload: Annotated[
        str, typer.Option(help="Comma-separated names.", show_default=True)
    ] = "poisson,bursts,clients,longprompt",
    quick: Annotated[bool, typer.Option(help="Small sizes: checks that everything runs.")] = False,
    programs: Annotated[int | None, typer.Option(min=1, max=100_000, help="Programs of each run.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=100, help="Number of runs of each setting, in turns.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of lengths, arrivals and tokens.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
) -> None:
    """Measure latencies and token gaps of programs that arrive over time, with the step planner and with fixed step sizes.

    Time is that of the engine thread, and idle time is skipped. Exits with code 1 if a goal is missed; not with --quick.
    """
    with one_line_errors():
        check_json_path(json_file)
        sizes = run.sized(run.QUICK if quick else run.Sizes(), programs, rounds)
        names = [name.strip() for name in workload.split(",")]
        found, missed = [], []
        with progress() as tell:
            for line in run.measure(RuntimeConfig(**settings), names, sizes, seed=seed, tell=tell):
                typer.echo(str(line))
                sys.stdout.flush()
                if isinstance(line, str):
                    continue
                found.append(asdict(line))
                if isinstance(line, Figure) and not line.is_met:
                    missed.append(line.name)
        write_json(json_file, found)
        if missed and not quick:
            raise CommandError(f"goals are missed: {', '.join(missed)}")


app = command(bench_arrivals)

if __name__ == "__main__":
    app()
