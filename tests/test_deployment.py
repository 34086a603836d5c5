"""The files for operators agree with the code: options, metrics and paths that they name exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from rtlang.__main__ import app
from rtlang.contract.metrics import Metrics

DEPLOY = Path(__file__).parents[1] / "docs" / "deploy"


def options(name: str | None = None) -> set[str]:
    command = typer.main.get_command(app)
    command = command if name is None else command.commands[name]  # type: ignore[attr-defined]
    return {option for item in command.params for option in item.opts}


def test_panels_show_metrics_that_exist() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    names = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    shown = {name for text in expressions for name in re.findall(r"rtlang:\w+", text)}
    assert shown <= names
    assert len(shown) >= 20
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.parametrize("file", ["Containerfile", "rtlang.service"])
def test_options_exist(file: str) -> None:
    text = (DEPLOY / file).read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith(("ENTRYPOINT", "ExecStart=")))
    before, _, after = line.replace('"', " ").partition(" serve ")
    assert set(re.findall(r"--[a-z-]+", before)) <= options()
    assert set(re.findall(r"--[a-z-]+", after)) <= options("serve")


def test_the_image_and_the_unit_run_without_rights() -> None:
    image, unit = ((DEPLOY / name).read_text(encoding="utf-8") for name in ("Containerfile", "rtlang.service"))
    assert "\nUSER 65534:65534\n" in image
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in unit
    assert "--api-key" not in image + unit
