"""Output of benchmark reports: as tables, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import typer
from rich.console import Console
from rich.table import Table

from rtlang.console.show import PIPED_WIDTH, to_json
from rtlang.console.source import CommandError


class BenchReport(Protocol):
    """The figures of a benchmark."""

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""

    def to_tables(self) -> Sequence[Table]:
        """The tables for a terminal."""

    def to_markdown(self) -> str:
        """The tables and facts as Markdown."""

    def facts(self) -> Sequence[str]:
        """One line per fact."""


def check_json_path(path: Path | None) -> None:
    """Check the value of `--json` before anything is measured.

    Raises:
        CommandError: the parent folder does not exist.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise CommandError(f"--json {path}: the parent folder does not exist")


def write_json(path: Path | None, plain: Any) -> None:
    """Write plain data to a file, if there is one."""
    if path is not None:
        path.write_text(to_json(plain) + "\n", encoding="utf-8")


def show_report(report: BenchReport, *, markdown: bool, json_file: Path | None) -> None:
    """Print a report, as Markdown or as tables and facts, and write its figures to `json_file`."""
    if markdown:
        typer.echo(report.to_markdown())
    else:
        console = Console(highlight=False, markup=False)
        if not console.is_terminal:
            console.width = PIPED_WIDTH
        for table in report.to_tables():
            console.print(table)
        for line in report.facts():
            console.print(f"- {line}", soft_wrap=True)
    write_json(json_file, report.to_plain())
