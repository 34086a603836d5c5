"""The files for operators agree with the code: options, metrics and paths that they name exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from rtlang.__main__ import app
from rtlang.console.serving import ENGINE_FAILED
from rtlang.fleet.engines.mirrored_metrics import OF_SERVER
from tests.support.servers.http_client import HttpClient
from tests.support.servers.serving import serving

DEPLOY = Path(__file__).parents[1] / "docs" / "deploy"


def options(name: str | None = None) -> set[str]:
    command = typer.main.get_command(app)
    command = command if name is None else command.commands[name]  # type: ignore[attr-defined]
    return {option for item in command.params for option in item.opts}


def exposed() -> dict[str, str]:
    """The type of each metric that `/metrics` of a server shows, by the name of its family."""
    with serving() as server:
        text = HttpClient(server.url).get("/metrics").body.decode()
    return dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))


def test_panels_show_every_metric_of_a_server_by_its_type() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    types = exposed()
    assert len(types) >= 20
    shown = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            for function, name in re.findall(r"(\w+)\((rtlang_\w+)", target["expr"]):
                family = name.removesuffix("_bucket") if name not in types else name
                expected = {"histogram": ("rate",), "counter": ("rate", "increase"), "gauge": ("sum", "max")}[
                    types[family]
                ]
                assert function in expected, target["expr"]
                assert ("histogram_quantile" in target["expr"]) is (types[family] == "histogram")
                shown.add(family)
    hidden = {name for name in types if not name.startswith("rtlang_") or name.endswith("_created")}
    assert types.keys() - hidden - shown == {"rtlang_kv_cache_usage_perc"}, "which is a ratio of others"
    for variable in dashboard["templating"]["list"]:
        assert set(re.findall(r"rtlang_\w+", variable["query"])) <= types.keys()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_panels_of_replicas_have_a_line_for_each() -> None:
    """The engines' own metrics have the label `replica` behind a frontend, and those that it counts itself have not."""
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["title"].startswith("Replicas: ")]
    assert len(panels) >= 6
    for target in (target for panel in panels for target in panel["targets"]):
        assert not re.search("|".join(OF_SERVER), target["expr"]), target["expr"]
        labels = re.findall(r"by \(([^)]*)\)", target["expr"])
        assert len(labels) == target["expr"].count("sum")
        assert all("replica" in each for each in labels)
        assert "{{replica}}" in target["legendFormat"]


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


def test_the_unit_starts_a_failed_engine_again_but_no_stopped_fleet() -> None:
    """0 is the status after `rtlang fleet stop`; see test_a_server_whose_fleet_was_stopped_has_not_failed."""
    unit = (DEPLOY / "rtlang.service").read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"\w+=", line))
    assert settings["Restart"] == "on-failure"
    assert not settings.keys() & {"RestartForceExitStatus", "SuccessExitStatus"}
    assert settings["RestartPreventExitStatus"].split() == ["1", "2"], "wrong settings"
    assert str(ENGINE_FAILED) not in settings["RestartPreventExitStatus"].split()
