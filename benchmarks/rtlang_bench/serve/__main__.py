"""The command `python -m rtlang_bench.serve`."""

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
from rtlang_bench.command import command, progress
from rtlang_bench.serve import run


@with_settings(RuntimeConfig, "settings")
def bench_serve(
    settings: dict[str, Any],
    quick: Annotated[bool, typer.Option(help="Small sizes: shows that all of it runs.")] = False,
    only: Annotated[
        str, typer.Option(help="Comma-separated names of classes, such as bombs or held_by_extensions.")
    ] = "",
    vllm_python: Annotated[
        str | None, typer.Option(help="Python of an environment with vLLM: also compare with vllm serve.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
) -> None:
    """Measure the promises of a server: one line per figure with its name, value, bound, and whether the bound is met.

    Starts servers on loopback, and attacks them. Takes less than ten minutes on two cores. Exits with code 1 if a bound is missed;
    not with --quick.
    """
    with one_line_errors():
        check_json_path(json_file)
        chosen = [name for each in only.split(",") if (name := each.strip())]
        if unknown := [name for name in chosen if name not in run.CLASSES]:
            raise CommandError(f"--only {unknown[0]}: allowed are {', '.join(run.CLASSES)}")
        if run.AGAINST_VLLM in chosen and vllm_python is None:
            raise CommandError(f"--only {run.AGAINST_VLLM} needs --vllm-python")
        sizes = run.QUICK if quick else run.Sizes()
        found = []
        with progress() as tell:
            for figure in run.measure(RuntimeConfig(**settings), sizes, tell, chosen, vllm_python):
                found.append(figure)
                typer.echo(str(figure))
                sys.stdout.flush()
        write_json(json_file, [asdict(figure) for figure in found])
        missed = [figure.name for figure in found if not figure.is_met]
        if missed and not quick:
            raise CommandError(f"bounds are missed: {', '.join(missed)}")


app = command(bench_serve)

if __name__ == "__main__":
    app()
