"""`rtlang fleet` on clusters that scripts stand in for: what it prints, and how it fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from rtlang.console import fleet_commands as console
from rtlang.fleet.replicas.fleet_plan import Roster
from rtlang.fleet.replicas.scaling import Scaling


class ScriptedRay:
    """A cluster with one fleet."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def join_ray(self, address: str) -> None:
        self.calls.append(("join", address))

    def leave_ray(self) -> None:
        self.calls.append(("leave",))

    def fleet_names(self) -> list[str]:
        return ["blue"]

    def fleet_status(self, name: str) -> Any:
        if name != "blue":
            return None
        roster = Roster(("r1", "r2"), ("r3",))
        facts = {"waiting": {"r1": 7.0, "r2": 5.0}, "frontends": ("a",), "scaling": Scaling(2, 4), "is_replacing": True}
        return SimpleNamespace(name="blue", model="tiny", roster=roster, **facts)

    def __getattr__(self, method: str) -> Any:
        def call(name: str, *args: Any) -> bool:
            self.calls.append((method, name, *args))
            return name == "blue"

        return call


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> ScriptedRay:
    ray = ScriptedRay()
    monkeypatch.setattr(console, "ray_modules", lambda: (ray, ray))
    monkeypatch.setattr(console, "check_cluster", lambda address: None)
    return ray


def run(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(console.fleet, list(args))
    return done.exit_code, done.output


def test_fleets_are_listed(ray: ScriptedRay) -> None:
    assert run("list", "--ray", "a:1") == (
        0,
        "blue, tiny, 2 replicas (2 to 4), 12 tokens waiting, 1 frontends, 1 draining, being replaced\n",
    )
    assert ray.calls == [("join", "a:1"), ("leave",)]


def test_a_fleet_is_scaled_replaced_and_stopped(ray: ScriptedRay) -> None:
    assert run("scale", "blue", "--min-replicas", "3")[0] == 0
    assert run("replace", "blue")[0] == 0
    assert run("stop", "blue")[0] == 0
    done = [call for call in ray.calls if call[0] not in ("join", "leave")]
    assert done == [("scale_fleet", "blue", Scaling(3, 3)), ("replace_fleet", "blue"), ("end_fleet", "blue")]


@pytest.mark.parametrize("args", [["scale", "red", "--min-replicas", "1"], ["replace", "red"], ["stop", "red"]])
def test_a_fleet_that_does_not_exist_is_named(ray: ScriptedRay, args: list[str]) -> None:
    code, output = run(*args)
    assert code == 1
    assert "no fleet 'red'" in output
    assert ray.calls[-1] == ("leave",)
