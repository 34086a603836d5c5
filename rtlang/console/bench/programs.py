"""The commands `rtlang bench programs` and `rtlang bench language`."""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rtlang.bench.workloads.catalogue import BEST_OF, PROGRAM_WORKLOADS
from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.progress import told
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig


def bench_language(
    programs: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Measure the memory of this many waiting async programs instead."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each case; the median counts.")] = 7,
) -> None:
    """Measure what the language costs: processor time per generation call, or memory per waiting program.

    The target answers at once and computes nothing. Exits with code 1 if a limit is exceeded.
    """
    language = import_module("rtlang.bench.language")
    with one_line_errors():
        found = language.measure_calls(repeats=repeats) if programs is None else [language.measure_memory(programs)]
        for each in found:
            typer.echo(str(each))
        if not all(each.is_met for each in found):
            raise CommandError("the language exceeds a limit")


@with_settings(RuntimeConfig, "settings")
def bench_programs(
    settings: dict[str, Any],
    workload: Annotated[
        str,
        typer.Option(
            help=f"Comma-separated list of workloads to run, in order: {', '.join(PROGRAM_WORKLOADS)}; or {BEST_OF}.",
            metavar="NAMES",
        ),
    ] = ",".join(PROGRAM_WORKLOADS),
    quick: Annotated[bool, typer.Option(help="Small workloads, one turn: shows that all of it runs.")] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Turns of each workload; default: 3, or 1 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the generated texts.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables as markdown.")] = False,
) -> None:
    """Measure what each pass of the compiler saves on programs: with all passes, without each in turn, and with none.

    `best_of` measures the time of the best of 16 against that of one generation. Exits with code 1 if a mark is missed; not with --quick.
    """
    progress = Console(stderr=True, highlight=False, markup=False)
    with one_line_errors():
        check_json_path(json_file)
        names = tuple(name.strip() for name in workload.split(",") if name.strip())
        config, command = RuntimeConfig(**settings), shlex.join(["rtlang", *sys.argv[1:]])
        with told(progress) as tell:
            if names == (BEST_OF,):
                best_of = import_module("rtlang.bench.programs.best_of")
                report = best_of.run_best_of(config, is_quick=quick, repeats=repeats, command=command, tell=tell)
            else:
                ablation = import_module("rtlang.bench.programs.ablation")
                options = ablation.ProgramOptions(workloads=names, is_quick=quick, repeats=repeats, seed=seed)
                report = ablation.run_ablation(config, options, command=command, tell=tell)
        show_report(report, markdown=markdown, json_file=json_file)
        if not quick and not report.is_met:
            raise CommandError("a mark is missed")
