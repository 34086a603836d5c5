"""Launchers of engines that share a machine: the environment that they give."""

from __future__ import annotations

import pytest

from rtlang.cluster.machine import GPUS, SHARED_BY, process_launchers
from rtlang.contract.config import RuntimeConfig
from rtlang.model import system_resources


@pytest.mark.parametrize(
    ("visible", "expected"),
    [("", ["0", "1", "2"]), ("3", ["3", "3", "3"]), ("GPU-a,GPU-b", ["GPU-a", "GPU-b", "GPU-a"])],
)
def test_replicas_on_gpus_take_turns(visible: str, expected: list[str]) -> None:
    launcher_of = process_launchers(RuntimeConfig(device="cuda"), 3, environ={GPUS: visible})
    launchers = [launcher_of(name) for name in ("replica-0", "replica-1", "replica-2")]
    assert [launcher.name for launcher in launchers] == ["replica-0", "replica-1", "replica-2"]
    assert [launcher.environment[GPUS] for launcher in launchers] == expected


def test_replicas_on_the_cpu_know_how_many_share_the_machine() -> None:
    launcher = process_launchers(RuntimeConfig(), 4, environ={GPUS: "1"})("replica-0")
    assert launcher.environment == {system_resources.SHARED_BY: "4"}
    assert SHARED_BY == system_resources.SHARED_BY
