"""Processes of other ranks that fail at their start, each reported as one error; that they work is shown in tests/system."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import ConfigError, EngineDeadError, ModelLoadError
from rtlang.model.host_runner import HostRunner
from rtlang.model.parallel import rank_processes
from rtlang.model.parallel.rank_processes import RankProcesses, failure_path

CONFIG = RuntimeConfig(tensor_parallel=2)


def spawn(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let every rank run this program, with `failed` as the path for its error."""

    def start(start: dict[str, Any]) -> subprocess.Popen[bytes]:
        path = failure_path(Path(start["store"]), start["rank"])
        return subprocess.Popen([sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE)

    monkeypatch.setattr(rank_processes, "_spawn", start)


def test_a_process_that_ends_at_once_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn(monkeypatch, "raise SystemExit(3)")
    processes = RankProcesses(CONFIG)
    with pytest.raises(ModelLoadError, match="rank 1 of 2 ended with code 3"):
        processes.start()
    processes.close()


def test_the_error_of_a_process_is_that_of_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.dumps({"code": "config", "message": "m", "facts": {"field": "num_pages", "value": 3, "allowed": "x"}})
    spawn(monkeypatch, f"import sys; open(sys.argv[1], 'w').write({report!r}); sys.exit(71)")
    runner = HostRunner(CONFIG)
    with pytest.raises(ConfigError) as caught:
        runner.load()
    assert caught.value.field == "num_pages"
    runner.close()


def test_a_process_that_does_not_start_in_time_is_named_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn(monkeypatch, "import sys; sys.stdin.read()")
    monkeypatch.setattr(rank_processes, "START_TIMEOUT_S", 0.1)
    processes = RankProcesses(CONFIG)
    with pytest.raises(ModelLoadError, match="rank 1 did not start within"):
        processes.start()
    processes.close()
    assert all(process.poll() == 0 for process in processes._processes.values())


def test_what_fails_while_all_ranks_live_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "_EXIT_TIMEOUT_S", 0.05)
    processes = RankProcesses(CONFIG)
    processes.loaded()
    for error, message in (
        (MemoryError("little"), "rank 0 of 2 failed, and the others cannot go on: MemoryError: little"),
        (RuntimeError("Timed out waiting 60000ms"), "rank 1 of 2 did not answer within 60 s"),
    ):
        with pytest.raises(EngineDeadError, match=message), processes.guard():
            raise error


def test_the_end_of_a_process_is_told_once_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn(monkeypatch, "raise SystemExit(5)")
    told: list[EngineDeadError] = []
    processes = RankProcesses(CONFIG, told.append)
    with pytest.raises(ModelLoadError):
        processes.start()
    assert told == []
    processes.loaded()
    assert [str(error) for error in told] == ["rank 1 of 2 ended with code 5"]
    processes.close()


def test_a_model_that_cannot_be_divided_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "_spawn", None)
    with pytest.raises(ConfigError, match="tensor_parallel = 3: expected a divisor of 4 heads"):
        HostRunner(RuntimeConfig(tensor_parallel=3)).load()
    with pytest.raises(ConfigError, match=r"tensor_parallel = 3: .*q_proj has 4 heads, which 3 ranks cannot divide"):
        HostRunner(RuntimeConfig(tensor_parallel=3, decoder="transformers")).load()
