"""The tables of options, commands and metrics say what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

import rtlang as rt
from rtlang.__main__ import app
from rtlang.contract.service.metrics import PREFIX, Metrics
from tests.support.config_table import PAGE, page_with_tables

DOCS = Path(__file__).parents[2] / "docs"


def commands(command: Any = None, name: str = "rtlang") -> Iterator[tuple[str, Any]]:
    """Every command that does something, under its full name."""
    command = typer.main.get_command(app) if command is None else command
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    if command.invoke_without_command:
        yield name, command
    for key, each in ((key, each) for key, each in inner.items() if not each.hidden):
        yield from commands(each, f"{name} {key}")


def test_the_tables_of_options_are_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_tables(page), "run: python -m tests.support.config_table"


def test_every_command_and_its_own_options_are_described() -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    settings = {item.name for config in (rt.RuntimeConfig, rt.ServeConfig) for item in fields(config)}
    for name, command in commands():
        section = page.partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]
        assert section, name
        own = {option for item in command.params if item.name not in settings or item.envvar for option in item.opts}
        missing = {option for option in own if option.startswith("--") and f"`{option}" not in section}
        assert missing - {"--help"} == set(), name


def test_every_option_on_the_page_of_commands_exists() -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    known = {
        option for _, command in commands() for item in command.params for option in item.opts + item.secondary_opts
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert named - known - {"--help", "--version", "--verbose", "--log-format"} == set()


def test_every_metric_is_described() -> None:
    page = (DOCS / "serving.md").read_text(encoding="utf-8")
    families = [family for family in Metrics().registry.collect() if not family.name.endswith("_created")]
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert {name for name in names if f"`{name.removeprefix(PREFIX)}`" not in page} == set()
