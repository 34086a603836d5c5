"""The command `python -m rtlang_bench.programs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang_bench.command import command, command_line, progress
from rtlang_bench.programs.ablation import ProgramOptions, run_ablation
from rtlang_bench.programs.best_of import BEST_OF, BestOfReport, run_best_of
from rtlang_bench.programs.report import ProgramReport
from rtlang_bench.programs.workloads import MAKERS


@with_settings(RuntimeConfig, "settings")
def bench_programs(
    settings: dict[str, Any],
    workload: Annotated[
        str,
        typer.Option(
            help=f"Comma-separated list of workloads to run, in order: {', '.join(MAKERS)}; or {BEST_OF}.",
            metavar="NAMES",
        ),
    ] = ",".join(MAKERS),
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
    with one_line_errors():
        check_json_path(json_file)
        names = tuple(name.strip() for name in workload.split(",") if name.strip())
        config, line = RuntimeConfig(**settings), command_line("programs")
        report: ProgramReport | BestOfReport
        with progress() as tell:
            if names == (BEST_OF,):
                report = run_best_of(config, is_quick=quick, repeats=repeats, command=line, tell=tell)
            else:
                options = ProgramOptions(workloads=names, is_quick=quick, repeats=repeats, seed=seed)
                report = run_ablation(config, options, command=line, tell=tell)
        show_report(report, markdown=markdown, json_file=json_file)
        if not quick and not report.is_met:
            raise CommandError("a mark is missed")


app = command(bench_programs)

if __name__ == "__main__":
    app()
