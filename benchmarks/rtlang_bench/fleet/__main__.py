"""The command `python -m rtlang_bench.fleet`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rtlang.console.bench.report_output import check_json_path, show_report, write_json
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang_bench.command import command, command_line, progress
from rtlang_bench.fleet import fleet_figures, simulation
from rtlang_bench.fleet.fleet_programs import QUICK, ProgramSizes
from rtlang_bench.fleet.simulated_load import LoadShape


@with_settings(RuntimeConfig, "settings")
def bench_fleet(
    settings: dict[str, Any],
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate 1,000 replicas and 1,000,000 programs under several rules.")
    ] = False,
    programs: Annotated[
        int | None, typer.Option(min=100, max=10_000_000, help="Programs of the simulation.", show_default=False)
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=10_000,
            help="Replicas of the simulation; documents and programs in proportion.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: checks that everything runs.")] = False,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Turns of each measurement; not of the simulation.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the programs and of random choices.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables of the simulation as markdown.")] = False,
) -> None:
    """Measure two engines against one, and routing of whole programs against rules for single requests; or simulate a large fleet.

    Exits with code 1 if a mark is missed; not with --quick.
    """
    with one_line_errors():
        check_json_path(json_file)
        with progress() as tell:
            if simulate:
                if settings:
                    raise CommandError("--simulate runs no model and takes no runtime options")
                missed = _simulate(programs, replicas, quick, seed, json_file, markdown, tell)
            elif programs is not None or replicas is not None or markdown:
                raise CommandError("--programs, --replicas and --markdown are only for --simulate")
            else:
                missed = _measure(RuntimeConfig(**settings), quick, rounds, seed, json_file, tell)
        if not quick and missed:
            raise CommandError(f"marks are missed: {', '.join(missed)}")


def _simulate(
    programs: int | None,
    replicas: int | None,
    quick: bool,
    seed: int,
    json_file: Path | None,
    markdown: bool,
    tell: Callable[[str], None],
) -> list[str]:
    """Print the report of the simulation; returns the marks that it misses."""
    shape = simulation.QUICK if quick else LoadShape()
    if replicas is not None:
        shape = shape.scaled_to(replicas)
    if programs is not None:
        shape = replace(shape, num_programs=programs)
    report = simulation.run_simulation(shape, seed=seed, command=command_line("fleet"), tell=tell)
    show_report(report, markdown=markdown, json_file=json_file)
    return [figure.name for figure in report.figures if not figure.is_met]


def _measure(
    config: RuntimeConfig, quick: bool, rounds: int, seed: int, json_file: Path | None, tell: Callable[[str], None]
) -> list[str]:
    """Print the figures of a real fleet, each as soon as it is known; returns the marks that are missed."""
    found = []
    for figure in fleet_figures.measure_fleet(
        config, QUICK if quick else ProgramSizes(), rounds=1 if quick else rounds, seed=seed, tell=tell
    ):
        found.append(figure)
        typer.echo(str(figure))
        sys.stdout.flush()
    write_json(json_file, [asdict(figure) for figure in found])
    return [figure.name for figure in found if not figure.is_met]


app = command(bench_fleet)

if __name__ == "__main__":
    app()
