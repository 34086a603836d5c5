"""Our side's process runs a case, and its measurements pass as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rtlang.bench.baselines import rtlang_worker
from rtlang.bench.baselines.rtlang_worker import measurement_of, plain_measurement, run_case
from rtlang.bench.measure import Measurement
from rtlang.bench.workloads.steps import CASES
from rtlang.contract.request_graph import RequestGraph
from tests.support.engine.encoders import Letters


def test_a_measurement_passes_as_json() -> None:
    run = Measurement(
        2.0, (1.5, 2.0), {(0, 1): (0.5, 1.5), (1, 3): ()}, {(0, 1): (4, 5), (1, 3): ()}, 7, 1, (0.0, 0.1), 3, 0.25, 99
    )
    assert measurement_of(json.loads(json.dumps(plain_measurement(run)))) == run


def test_a_case_is_run_with_an_empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    run = Measurement(2.0, (1.5,), {}, {}, 7)

    def run_on_target(target: object, graphs: tuple[RequestGraph, ...]) -> Measurement:
        calls.append(graphs)
        return run

    monkeypatch.setattr(rtlang_worker, "run_on_target", run_on_target)
    runtime: Any = SimpleNamespace(tokenizer=Letters(), clear_cache=lambda: calls.append("cleared"))
    measured = run_case(runtime, "decode 2", 5)
    assert calls == ["cleared", CASES["decode 2"](Letters(), seed=5).graphs]
    assert replace(measured, cpu_s=None) == run
    assert measured.cpu_s is not None
