"""The command `rtlang bench restart`."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console

from rtlang.console.errors import one_line_errors
from rtlang.console.options import with_settings
from rtlang.console.progress import told
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig


@with_settings(RuntimeConfig, "settings")
def bench_restart(
    settings: dict[str, Any],
    tokens: Annotated[int, typer.Option(min=64, max=1_000_000, help="Length of the known prompt.")] = 4000,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Cold and warm starts; the medians count.")] = 3,
) -> None:
    """Measure the first token of a known prompt after a restart, with and without a cache directory.

    Exits with code 1 if the first token does not come at least 5 times sooner with the directory, or if the texts differ.
    """
    warm_restart = import_module("rtlang.bench.warm_restart")
    with one_line_errors():
        with told(Console(stderr=True, highlight=False, markup=False)) as tell:
            found = warm_restart.measure_warm_restart(
                RuntimeConfig(**settings), num_tokens=tokens, rounds=rounds, tell=tell
            )
        typer.echo(str(found))
        if not found.is_met:
            raise CommandError("the goal is missed")
