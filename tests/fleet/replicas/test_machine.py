"""Launchers of engines that share a machine: the environment that they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, EngineDeadError
from rtlang.fleet.replicas import machine
from rtlang.fleet.replicas.machine import GPUS, SHARED_BY, process_launchers
from rtlang.model import system_resources

NAMES = ("r1", "r2", "r3")


@pytest.mark.parametrize(
    ("visible", "num_ranks", "expected"),
    [
        (None, 1, ["GPU-0", "GPU-1", "GPU-2"]),
        ("5,3,4", 1, ["5", "3", "4"]),
        (None, 2, ["GPU-0,GPU-1", "GPU-2,GPU-3", "GPU-4,GPU-5"]),
        ("0,1,2,3,4,5,6", 2, ["0,1", "2,3", "4,5"]),
    ],
)
def test_replicas_see_gpus_of_their_own(visible: str | None, num_ranks: int, expected: list[str]) -> None:
    launcher_of = process_launchers(
        RuntimeConfig(device="cuda", tensor_parallel=num_ranks),
        3,
        lambda: NAMES,
        environ={} if visible is None else {GPUS: visible},
        list_gpus=lambda: [f"GPU-{index}" for index in range(6)],
    )
    launchers = [launcher_of(name) for name in NAMES]
    assert [launcher.name for launcher in launchers] == list(NAMES)
    assert [launcher.environment[GPUS] for launcher in launchers] == expected
    assert launcher_of("r2").environment[GPUS] == expected[1]


def test_a_replica_takes_the_gpu_of_one_that_has_ended() -> None:
    in_use = ["r1", "r2"]
    launcher_of = process_launchers(RuntimeConfig(device="cuda"), 2, lambda: in_use, environ={GPUS: "6,7"})
    assert [launcher_of(name).environment[GPUS] for name in in_use] == ["6", "7"]
    in_use.append("r3")
    with pytest.raises(EngineDeadError, match="r3: no GPU is free"):
        launcher_of("r3")
    in_use.remove("r1")
    assert launcher_of("r3").environment[GPUS] == "6"
    in_use[:] = ["r2~2", "r3"]  # behind a rolling update
    assert launcher_of("r2~3").environment[GPUS] == "7"
    assert launcher_of("r3").environment[GPUS] == "6"


@pytest.mark.parametrize(("visible", "found"), [("0,1,2", 3), ("", 0)])
def test_too_few_gpus_are_refused(visible: str, found: int) -> None:
    config = RuntimeConfig(device="cuda", tensor_parallel=2)
    with pytest.raises(ConfigError, match=rf"max_replicas = 2: expected at most {found // 2}: .* 2 of {found} GPUs"):
        process_launchers(config, 2, lambda: (), environ={GPUS: visible})


def test_gpus_are_those_that_nvidia_smi_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setattr(machine, "_LIST_GPUS", (str(program),))
    with pytest.raises(ConfigError, match="1 of 0 GPUs"):
        process_launchers(RuntimeConfig(device="cuda"), 1, lambda: (), environ={})
    program.write_text("#!/bin/sh\necho GPU-a\necho GPU-b\n", encoding="utf-8")
    program.chmod(0o755)
    launcher_of = process_launchers(RuntimeConfig(device="cuda"), 2, lambda: ("r1",), environ={})
    assert [launcher_of(name).environment[GPUS] for name in ("r1", "r2")] == ["GPU-a", "GPU-b"]


def test_replicas_on_the_cpu_know_how_many_share_the_machine() -> None:
    launcher = process_launchers(RuntimeConfig(), 4, lambda: (), environ={GPUS: "1"})("r1")
    assert launcher.environment == {system_resources.SHARED_BY: "4"}
    assert SHARED_BY == system_resources.SHARED_BY
