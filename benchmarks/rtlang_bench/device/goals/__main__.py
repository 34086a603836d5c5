"""The command `python -m rtlang_bench.device.goals`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang_bench.command import command
from rtlang_bench.device.goals import goals
from rtlang_bench.device.goals.processes import Part, read_figures, run_parts
from rtlang_kernels_bench.output import Output

_KERNELS = "-m", "rtlang_kernels_bench", "--device", "cuda"
_ENGINE = "-m", "rtlang_bench.device.goals.engine_parts"
PARTS: tuple[Part, ...] = (
    Part("prompts", 75, (*_KERNELS, "--only", "extend", "--quick")),
    Part("steps", 110, (*_ENGINE, "steps")),
    Part("constrained", 90, (*_ENGINE, "constrained")),
    Part("live-large", 80, (*_ENGINE, "live-large")),
    Part("texts", 45, (*_ENGINE, "texts")),
    Part("live-small", 60, (*_ENGINE, "live-small")),
    Part("variants", 90, (*_ENGINE, "variants")),
    Part("experts", 30, (*_KERNELS, "--only", "experts", "--quick")),
    Part("decode", 30, (*_KERNELS, "--only", "decode", "--quick")),
    Part("copies", 20, ("-m", "rtlang_bench.device.copies"), has_budget=False),
    Part("profile", 40, (*_ENGINE, "profile")),
    Part("checks", 600, (*_KERNELS, "--quick")),
)
"""Most decisive first. The last one takes the time that the others left."""
_TABLE = "table.md"


def measure_goals(
    folder: Annotated[Path, typer.Argument(help="Receives the figures and the output of each part, and table.md.")],
    budget_s: Annotated[float, typer.Option(min=1, help="Stop after this many seconds.")] = 540.0,
    only: Annotated[str | None, typer.Option(help=f"Parts: {', '.join(part.name for part in PARTS)}.")] = None,
    show: Annotated[bool, typer.Option(help="Measure nothing: print the table of the figures in FOLDER.")] = False,
) -> None:
    """Measure one GPU and print the figures beside their goals; needs an H100 or H200, and takes nine minutes."""
    with one_line_errors():
        if not math.isfinite(budget_s):
            raise CommandError(f"--budget-s {budget_s}: expected a finite number")
        chosen = PARTS
        if only is not None:
            by_name = {part.name: part for part in PARTS}
            if unknown := [name for name in only.split(",") if name not in by_name]:
                raise CommandError(f"--only {unknown[0]}: expected {', '.join(by_name)}")
            chosen = tuple(by_name[name] for name in by_name if name in only.split(","))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"{folder}: {error}") from error

        def write_table() -> None:
            (folder / _TABLE).write_text(goals.table(read_figures(folder)) + "\n", encoding="utf-8")

        num_failed = 0
        if not show:
            with Output(folder / "output.txt") as output:
                run_parts(chosen, folder, output, budget_s, then=write_table)
                num_failed = output.num_failed
        found = read_figures(folder)
        typer.echo(goals.table(found))
        missed = sum(not figure.is_met for figure in goals.goals(found))
        if num_failed or missed:
            raise CommandError(f"{num_failed} parts failed; {missed} goals missed or not measured")


app = command(measure_goals)

if __name__ == "__main__":
    app()
