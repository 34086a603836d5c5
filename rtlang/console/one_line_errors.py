"""Errors of a command: one line on standard error and exit code 1, or 75 if the program waits for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from rtlang.console.source import CommandError
from rtlang.contract.errors import EffectError, RtlangError
from rtlang.contract.process.terminal_text import terminal_text

UNDECIDED = 75
"""Exit code of a run that ends with an open question, or with a call whose outcome is unknown: answer, and run it again."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors that a user can cause into one line on standard error and exit code 1; 75 if an effect of a program needs a person."""
    try:
        yield
    except (RtlangError, CommandError) as error:
        line = terminal_text(" ".join(str(error).split("\n")))
        typer.echo(f"error: {line}", err=True)
        raise typer.Exit(UNDECIDED if isinstance(error, EffectError) else 1) from None
    except KeyboardInterrupt:
        typer.echo("error: interrupted", err=True)
        raise typer.Exit(130) from None
