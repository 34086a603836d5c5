"""The device's benchmark on a tiny model in triton's interpreter: all of it but the clock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang.__main__ import app
from rtlang.bench import device
from rtlang.bench.checkpoint import SHAPE
from rtlang.bench.device import FULL, Case, Line, Plan
from rtlang.bench.workloads import TextMaker, Workload
from rtlang.config import RuntimeConfig
from rtlang.engine.runtime import Runtime
from rtlang.lang.graph import Generate, RequestGraph, Text
from rtlang.model.config import ModelConfig
from rtlang.params import SamplingParams

TINY: dict[str, Any] = {
    **SHAPE,
    "vocab_size": 1600,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 256,
}
CONFIG = RuntimeConfig(device="interpreter", dtype="float32", num_pages=40, num_threads=1, max_rows=2)


@pytest.fixture
def own_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes of the CPU use the CPU's kernels, others those of a GPU."""

    def make(*, config: RuntimeConfig) -> Runtime:
        if config.device == "cpu":
            monkeypatch.delenv("RTLANG_KERNELS", raising=False)
        else:
            monkeypatch.setenv("RTLANG_KERNELS", "triton")
        return Runtime(config=config)

    monkeypatch.setattr(device, "Runtime", make)


def small(name: str, encoder: Any, *, seed: int, quick: bool) -> Workload:
    maker = TextMaker(encoder, seed)
    params = SamplingParams(max_tokens=2, ignore_eos=True)
    graph = RequestGraph((Text(0, None, (maker.text(9, is_start=True),)), Generate(1, 0, "out", params)))
    return Workload(name, "small", (graph,))


@pytest.mark.slow
def test_texts_are_compared_with_the_cpus(own_columns: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    assert device.check(CONFIG, told.append, shape=TINY, make=small)
    assert told == [f"check {name}: 1 of 1 texts in float32 are the CPU's" for name in device.CHECKED]
    monkeypatch.setattr(device, "agreement", lambda *sides: (0, 1))
    assert not device.check(CONFIG, told.append, shape=TINY, make=small)


@pytest.mark.slow
def test_every_case_is_decoded(own_columns: None) -> None:
    cases = (
        Case("one", 1, 20),
        Case("two constrained", 2, 20, is_constrained=True),
        Case("two, not shared", 2, 40, shared_tokens=32, prefix_sharing=False),
        Case("late", 1, 20),
    )
    plan = Plan(TINY, cases, short_tokens=1, long_tokens=3, repeats=1)
    ticks = iter(range(1000))
    lines: list[Line] = []
    told: list[str] = []
    found = device.measure(
        CONFIG, plan, 1e9, told.append, is_late=lambda: len(lines) == 2, clock=lambda: float(next(ticks))
    )
    for line in found:
        lines.append(line)
    assert [line.case.name for line in lines] == ["one", "two constrained", "two, not shared"][: len(lines)]
    assert len(lines) == 2
    assert told == ["late: not measured, the time is used up", "two, not shared: not measured, the time is used up"]
    assert all(line.floor_us > 0 for line in lines)


def test_the_floor_counts_weights_and_distinct_keys(tmp_path: Any) -> None:
    model = ModelConfig.from_pretrained(device.write_shape(tmp_path, TINY))
    case = Case("x", 3, 50, shared_tokens=32)
    plan = replace(FULL, shape=TINY, short_tokens=10, long_tokens=20)
    weights = 2 * 32 * (2 + 1) * 16 + 3 * 32 * 48 + 1600 * 32
    kv = (32 + 3 * (18 + 15)) * 2 * 16
    assert device.floor_us(model, CONFIG, case, plan, 1e6) == pytest.approx(4 * (weights + kv))
    alone = replace(case, prefix_sharing=False)
    assert device.floor_us(model, CONFIG, alone, plan, 1e6) == pytest.approx(4 * (weights + 3 * (50 + 15) * 2 * 16))
    bfloat16 = replace(CONFIG, device="cuda", dtype="bfloat16", kv_dtype="float8")
    assert device.floor_us(model, bfloat16, case, plan, 1e6) == pytest.approx(2 * weights + kv)


def test_the_full_plan_is_the_shape_that_it_says() -> None:
    assert (FULL.shape["num_hidden_layers"], FULL.shape["hidden_size"], FULL.shape["vocab_size"]) == (32, 4096, 128256)
    assert {case.num_rows for case in FULL.cases} >= {1, 8, 64, 128}
    assert any(case.is_constrained for case in FULL.cases)


def test_a_table_compares_the_cases_that_belong_together() -> None:
    plain, bound = Case("b", 4, 9), Case("b constrained", 4, 9, is_constrained=True)
    shared, alone = Case("s", 4, 9, 8), Case("s, not shared", 4, 9, 8, prefix_sharing=False)
    speeds = {plain: 100.0, bound: 98.0, shared: 300.0, alone: 100.0}
    lines = [Line(case, 4e6 / speed, 0.01, speed, 1000.0) for case, speed in speeds.items()]
    text = device.table(lines)
    assert "constrained / unconstrained throughput: 0.980" in text
    assert "shared / not shared throughput: 3.00" in text
    assert len(json.loads(device.to_json(lines))) == 4


def test_figures_without_a_gpu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke
    result = run(app, ["bench", "--device", "interpreter"])
    assert result.exit_code == 1
    assert "mean nothing" in result.output
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = run(app, ["bench", "--device", "cuda"])
    assert result.exit_code == 1
    assert "torch sees no GPU" in result.output
