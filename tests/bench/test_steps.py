"""Pairs of processes: their order, the direction of each ratio, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rtlang.bench import steps
from rtlang.bench.measure import Measurement
from rtlang.bench.steps import Figure, OurProcess, Pair, TheirProcess, run_steps
from rtlang.bench.workloads.steps import CASES
from rtlang.contract.config import RuntimeConfig

MIB = 1 << 20


def made(tokens: float, cpu_s: float) -> Measurement:
    """A run of a case at a number of tokens a second."""
    return Measurement(1.0, (1.0,), {(0, 1): (1.0, 1.0 + 1 / tokens)}, {(0, 1): (1, 2)}, 3, cpu_s=cpu_s)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for both processes; the names of those that were started."""
    names: list[str] = []

    class Ours(OurProcess):
        def __init__(self, config: RuntimeConfig, cores: list[int]) -> None:
            names.append("ours")
            self.ready_cpu_s = 4.0

        def close(self) -> None:
            names.append("end")

        @property
        def resident_bytes(self) -> int:
            return 300 * MIB

        def run(self, case: str, seed: int) -> Measurement:
            return made(30.0, 1.0)

    class Theirs(TheirProcess):
        def __init__(self, *_: Any) -> None:
            names.append("theirs")

        close = Ours.close
        ready_cpu_s = 1.0  # type: ignore[assignment]
        resident_bytes = 150 * MIB  # type: ignore[assignment]
        version = "9"  # type: ignore[assignment]

        def run(self, case: str, seed: int) -> Measurement:
            return made(20.0, 3.0)

    monkeypatch.setattr(steps, "load_tokenizer", lambda path: None)
    monkeypatch.setattr(steps, "OurProcess", Ours)
    monkeypatch.setattr(steps, "TheirProcess", Theirs)
    return names


def test_sides_take_turns_and_ratios_say_who_is_ahead(started: list[str]) -> None:
    report = run_steps(RuntimeConfig(num_threads=1), libraries=Path("libraries"), repeats=2, command="rtlang bench")
    assert started == ["ours", "end", "ours", "theirs", "end", "end", "theirs", "ours", "end", "end"]
    figures = {each.name: each for each in report.figures}
    assert list(figures) == [*CASES, "ready", "memory"]
    for name in CASES:
        assert figures[name].ahead == pytest.approx([1.5, 1.5])
        assert figures[name].ahead_by_cpu == 3.0
    assert figures["memory"].ahead == [0.5, 0.5]
    assert figures["memory"].ahead_by_cpu is None
    assert figures["ready"].ahead_by_cpu == 0.25
    text = report.to_markdown()
    assert "| decode 1 | tokens/s | 30.0 | 20.0 | 1.50 (1.50-1.50) | 3.00 |" in text
    assert "| memory | MiB | 300 | 150 | 0.50 (0.50-0.50) | - |" in text
    assert "llama.cpp 9, 1 threads; 2 pairs" in text
    assert json.loads(json.dumps(report.to_plain()))["figures"][0]["pairs"][0]["ours"] == pytest.approx(30.0)
    assert report.to_tables()[0].row_count == len(figures)


def test_less_is_better_for_time_and_memory() -> None:
    assert Figure("ready", (Pair(2.0, 1.0),)).ahead == [0.5]
    assert Figure("decode 1", (Pair(2.0, 1.0),)).ahead == [2.0]
