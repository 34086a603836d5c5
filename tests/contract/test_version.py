"""One version everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import rtlang
from rtlang.contract.version import VERSION


def test_the_version_is_that_of_the_distribution_and_of_the_package() -> None:
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == VERSION == rtlang.__version__
