"""The command `rtlang bench fleet`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rtlang.console.bench.report_output import check_json_path, show_report
from rtlang.console.errors import one_line_errors
from rtlang.console.progress import told
from rtlang.console.source import CommandError


def bench_fleet(
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate 1,000 replicas and 1,000,000 programs under several rules.")
    ] = False,
    programs: Annotated[
        int | None, typer.Option(min=100, max=10_000_000, help="Programs of the simulation.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small sizes: checks that everything runs.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the programs and of random choices.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as JSON.")] = None,
    markdown: Annotated[bool, typer.Option(help="Print the tables as markdown.")] = False,
) -> None:
    """Compare rules that choose replicas for programs, in a simulation of a large fleet.

    Exits with code 1 if the router misses a mark; not with --quick.
    """
    progress = Console(stderr=True, highlight=False, markup=False)
    with one_line_errors():
        check_json_path(json_file)
        if not simulate:
            raise CommandError("only the simulation is available: pass --simulate")
        simulation = import_module("rtlang.bench.fleet.simulation")
        shape = simulation.QUICK if quick else import_module("rtlang.bench.fleet.simulated_load").LoadShape()
        if programs is not None:
            shape = replace(shape, num_programs=programs)
        with told(progress) as tell:
            report = simulation.run_simulation(
                shape, seed=seed, command=shlex.join(["rtlang", *sys.argv[1:]]), tell=tell
            )
        show_report(report, markdown=markdown, json_file=json_file)
        if not quick and not report.is_met:
            raise CommandError("a mark is missed")
