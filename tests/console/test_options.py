from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rtlang.console.options import with_settings
from rtlang.contract.config import RuntimeConfig, ServeConfig, setting_help


def command_line(config: type) -> tuple[typer.Typer, list[Any]]:
    """A command with one argument and the flags of `config`, and what it was called with."""
    app, calls = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False), []

    @app.command()
    @with_settings(config, "settings")
    def command(name: str, settings: dict[str, Any], loud: bool = False) -> None:
        calls.append((name, settings, loud))

    return app, calls


@pytest.mark.parametrize("config", [RuntimeConfig, ServeConfig])
def test_every_field_has_a_flag_with_its_help(config: type) -> None:
    app, _ = command_line(config)
    shown = " ".join(CliRunner().invoke(app, ["--help"], terminal_width=200).output.split())
    for item in fields(config):
        if item.metadata.get("variable"):
            assert f"--{item.name.replace('_', '-')} " not in shown
            continue
        assert "--" + item.name.replace("_", "-") in shown
        assert " ".join(setting_help(config)[item.name].split()[:4]) in shown


def test_only_what_is_given_is_passed_on_and_in_its_type() -> None:
    app, calls = command_line(RuntimeConfig)
    flags = [
        "x",
        "--page-size",
        "32",
        "--no-prefix-sharing",
        "--grammar-timeout-s",
        "2.5",
        "--dtype",
        "float32",
        "--loud",
    ]
    assert CliRunner().invoke(app, flags).exit_code == 0
    assert CliRunner().invoke(app, ["y", "--threads", "3"]).exit_code == 0
    given = {"page_size": 32, "prefix_sharing": False, "grammar_timeout_s": 2.5, "dtype": "float32"}
    assert calls == [("x", given, True), ("y", {"num_threads": 3}, False)]
    RuntimeConfig(**given)


def test_a_flag_may_be_given_several_times_where_the_field_is_a_tuple() -> None:
    app, calls = command_line(ServeConfig)
    assert CliRunner().invoke(app, ["x", "--allowed-origins", "a", "--allowed-origins", "b"]).exit_code == 0
    assert CliRunner().invoke(app, ["x"]).exit_code == 0
    assert [settings for _, settings, _ in calls] == [{"allowed_origins": ("a", "b")}, {}]


@pytest.mark.parametrize("flags", [["--page-size", "many"], ["--no-such-thing", "1"]])
def test_wrong_flags_are_refused(flags: list[str]) -> None:
    app, calls = command_line(RuntimeConfig)
    result = CliRunner().invoke(app, ["x", *flags])
    assert result.exit_code == 2
    assert flags[0] in result.output
    assert calls == []


def test_help_shows_the_defaults_of_the_config() -> None:
    app, _ = command_line(ServeConfig)
    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output
    assert str(ServeConfig().port) in shown
    assert ServeConfig().host in shown
