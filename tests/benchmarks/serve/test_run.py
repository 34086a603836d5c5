"""The whole benchmark: what becomes of parts that fail."""

from __future__ import annotations

import pytest

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.errors import EngineDeadError
from rtlang_bench.figure import Figure
from rtlang_bench.serve import run


def test_a_part_that_fails_is_not_measured_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoServer:
        def __init__(self, *options: str) -> None:
            raise EngineDeadError("no port")

    told: list[str] = []
    monkeypatch.setattr(run, "ServerProcess", NoServer)
    monkeypatch.setattr(run, "_frontend_parts", lambda *_: [("frontend", lambda: [Figure("frontend", 0, "<=", 1)])])
    monkeypatch.setattr(run, "_engine_parts", lambda config: [("cancel", lambda: [Figure("cancel", 0, "<=", 1)])])
    found = [str(each) for each in run.measure(RuntimeConfig(), run.QUICK, told.append)]
    names = ["kill", "streams", "feed", "never_reading", "bombs", "threads", "schemas", "floods"]
    assert told == ["cancel", "frontend", *names]
    assert found == [
        "cancel: 0, bound <= 1, met",
        "frontend: 0, bound <= 1, met",
        *(f"{name}: not measured, bound == 0, MISSED (EngineDeadError: no port)" for name in names),
    ]


def test_only_some_classes_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    attacks: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "_with_server", lambda config, served: served(None))
    monkeypatch.setattr(run, "thread_figures", lambda server, names: attacks.append(names) or ())
    told: list[str] = []
    found = list(run.measure(RuntimeConfig(), run.QUICK, told.append, ["held_by_stop_patterns", "held_by_long_texts"]))
    assert (found, told, attacks) == ([], ["threads"], [("long_texts", "stop_patterns")])
    list(run.measure(RuntimeConfig(), run.QUICK, told.append, ["threads"]))
    assert attacks[1] == run.QUICK.attacks
