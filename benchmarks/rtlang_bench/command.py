"""The shape of all commands here: options of the runtime, progress on standard error, exit code 1 if a goal is missed.

app = command(bench_memory)

if __name__ == "__main__":
    app()
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console

from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.console.bench.progress import told
from rtlang.console.source import CommandError
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.model.loader import model_directory

Shape = Annotated[
    str | None, typer.Option(help=f"Use a random model of this shape: {', '.join(SHAPES)}.", metavar="NAME")
]


class Found(Protocol):
    """The result of a benchmark."""

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""


def command(function: Callable[..., None]) -> typer.Typer:
    """The application of a module with one command."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(function)
    return app


def command_line(name: str) -> str:
    """The command as typed, for reports."""
    return shlex.join(["python", "-m", f"rtlang_bench.{name}", *sys.argv[1:]])


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that shows a line about the present work on standard error."""
    with told(Console(stderr=True, highlight=False, markup=False)) as tell:
        yield tell


@contextmanager
def config_of(settings: dict[str, Any], shape: str | None) -> Iterator[RuntimeConfig]:
    """The configuration, with a random model of a shape if one is named."""
    config = RuntimeConfig(**settings)
    if shape is None:
        yield config
        return
    if shape not in SHAPES:
        raise CommandError(f"--shape {shape}: expected {' or '.join(SHAPES)}")
    with TemporaryDirectory() as folder:
        directory = write_random(Path(folder, "model"), model_directory(EMBEDDED_MODEL), *SHAPES[shape])
        yield replace(config, model=str(directory))


def show(found: Found) -> None:
    """Print a result; raises CommandError if the goal is missed."""
    typer.echo(str(found))
    if not found.is_met:
        raise CommandError("the goal is missed")
