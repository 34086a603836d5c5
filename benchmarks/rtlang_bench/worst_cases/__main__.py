"""The command `python -m rtlang_bench.worst_cases`."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rtlang.console.bench.report_output import check_json_path, write_json
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import EMBEDDED_MODEL
from rtlang_bench.command import command, progress
from rtlang_bench.figure import Figure
from rtlang_bench.worst_cases.cases import is_known, numbers
from rtlang_bench.worst_cases.in_process import attack_in_process
from rtlang_bench.worst_cases.judge import (
    MEASURES,
    Baseline,
    CaseRecord,
    Measurement,
    figures,
    held_lines,
    note_measurements,
    note_memory,
    report,
    worst_cases,
    worst_lines,
)
from rtlang_bench.worst_cases.session import Observed, limit_bytes, session

WIDTH = 3  # cases at a time: attacker and canaries have two cores with the server
MAX_SERVERS = 20

Tell = Callable[[str], None]


def worst_cases_command(
    cases: Annotated[int, typer.Option(help="Number of cases.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of sizes and values.")] = 1,
    first: Annotated[int, typer.Option(help="Number of the first case.")] = 0,
    only: Annotated[
        str, typer.Option(help="A kind (function, node, route, frame, issue), or one of it: node:decide.")
    ] = "",
    case: Annotated[int | None, typer.Option(help="Repeat this case alone.")] = None,
    in_process: Annotated[bool, typer.Option(help="Attack a runtime in this process.")] = False,
    minutes: Annotated[
        float, typer.Option(help="No case begins later; a fifth as long for the worst cases alone.")
    ] = 20.0,
    alone: Annotated[bool, typer.Option(help="Repeat the worst cases alone.")] = True,
    model: Annotated[str, typer.Option(help="The model that is served.")] = EMBEDDED_MODEL,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write figures and cases to this file as JSON.")
    ] = None,
) -> None:
    """Send worst cases of every function, node kind, route and frame beside canaries of another key.

    Prints the worst ten by each measure, and each bound with the worst value. Exits with code 1 if a bound is missed.
    """
    with one_line_errors():
        check_json_path(json_file)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the server too
        if only and not is_known(only):
            raise CommandError(
                f"--only {only}: expected function, node, route, frame or issue, or one of a kind as in node:decide"
            )
        run = attack_in_process if in_process else _attack_server
        with progress() as tell:
            chosen = [case] if case is not None else list(numbers(cases, first, only))
            until = time.monotonic() + 60 * minutes
            observed, baseline = run(model, seed, chosen, 1 if case is not None else WIDTH, tell, until)
            is_late = time.monotonic() > until
            records = _noted(observed)
            found = list(
                figures(
                    records,
                    observed.measurements,
                    observed.samples,
                    baseline,
                    limit_bytes=limit_bytes(),
                    restarts=observed.restarts,
                )
            )
            if is_late:
                found.append(Figure("cases", len(records), "==", len(chosen), "", f"the {minutes:g} minutes are over"))
            _show(records, observed.measurements, baseline, found)
            if alone and case is None:
                _repeat_alone(run, model, seed, records, tell, time.monotonic() + 60 * minutes / 5)
                for line in worst_lines(records):
                    typer.echo(line)
        write_json(
            json_file, {"figures": [asdict(each) for each in found], "cases": [asdict(each) for each in records]}
        )
        if missed := [figure.name for figure in found if not figure.is_met]:
            raise CommandError(f"bounds are missed: {', '.join(missed)}")


def _attack_server(
    model: str, seed: int, chosen: Sequence[int], width: int, tell: Tell, until: float
) -> tuple[Observed, Baseline]:
    """Attack a server; one that was ended is followed by another, which goes on with the next case. No case begins after `until`."""
    observed, baseline, left = Observed(), None, list(chosen)
    for _ in range(MAX_SERVERS):
        with session(model, observed) as found:
            baseline = baseline or found.baseline
            tell(str(found.baseline))
            found.attack(seed, width, left, tell, until)
        left = [number for number in left if number not in observed.records]
        if not left or time.monotonic() > until:
            break
    assert baseline is not None
    return observed, baseline


def _noted(observed: Observed) -> list[CaseRecord]:
    records = list(observed.records.values())
    note_measurements(records, observed.measurements)
    note_memory(records, observed.samples)
    return records


def _repeat_alone(
    run: Callable[..., tuple[Observed, Baseline]],
    model: str,
    seed: int,
    records: list[CaseRecord],
    tell: Tell,
    until: float,
) -> None:
    """Repeat the worst cases by each measure one after the other, on one server."""
    chosen = {record.number: record for measure in MEASURES for record in worst_cases(records, measure)}
    if not chosen:
        return
    tell(f"{len(chosen)} cases alone")
    observed, _ = run(model, seed, sorted(chosen), 1, tell, until)
    for repeated in _noted(observed):
        chosen[repeated.number].alone = repeated.worst


def _show(records: list[CaseRecord], measurements: list[Measurement], baseline: Baseline, found: list[Figure]) -> None:
    typer.echo(str(baseline))
    for line in (*report(records), *held_lines(measurements)):
        typer.echo(line)
    for figure in found:
        typer.echo(str(figure))
    sys.stdout.flush()


app = command(worst_cases_command)

if __name__ == "__main__":
    app()
