"""The device's benchmark on a tiny model in triton's interpreter: all of it but the clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("triton")  # there is none for some platforms

from typer.testing import CliRunner

from rtlang.bench import machine
from rtlang.bench.checkpoint import SHAPE
from rtlang.bench.workloads.text import TextMaker
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, Text
from rtlang.model.loading.model_config import ModelConfig
from rtlang.runtime.runtime import Runtime
from rtlang_bench.device import run as device
from rtlang_bench.device.__main__ import app
from rtlang_bench.device.run import FULL, Case, Line, Plan
from rtlang_kernels_bench import device_cases, device_run, table
from rtlang_kernels_bench.output import Output
from tests.support.kernels.own_backends import use_own_backends

PATHS = os.pathsep.join(
    str(Path(__file__).parents[3] / part) for part in (".", "benchmarks", "kernels", "kernels/benchmarks", "grammars")
)
IMPORTS = """
import sys

class Missing:
    names = {"pydantic", "jsonschema", "outlines", "outlines_core", "llguidance", "lark", "websockets", "starlette", "uvicorn"}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import rtlang_bench.device.__main__
print("fine")
"""
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
def own_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_backends(monkeypatch, device)


def small(name: str, encoder: Any, *, seed: int, quick: bool) -> Workload:
    maker = TextMaker(encoder, seed)
    params = SamplingParams(max_tokens=2, ignore_eos=True)
    graph = RequestGraph((Text(0, None, (maker.text(9, is_start=True),)), Generate(1, 0, "out", params)))
    return Workload(name, "small", (graph,))


@pytest.mark.slow
def test_texts_are_compared_with_the_cpus(own_backends: None, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    assert device.check(CONFIG, told.append, shape=TINY, make=small)
    assert told == [f"check {name}: 1 of 1 float32 outputs match the CPU's" for name in device.CHECKED]
    monkeypatch.setattr(device, "agreement", lambda *sides: (0, 1))
    monkeypatch.setattr(device, "CHECKED", device.CHECKED[:1])
    assert not device.check(CONFIG, told.append, shape=TINY, make=small)


@pytest.mark.slow
def test_every_case_is_decoded(own_backends: None) -> None:
    cases = (
        Case("one", 1, 20),
        Case("two constrained", 2, 20, constraint=device.FREE_TEXT),
        Case("two, not shared", 2, 40, shared_tokens=32, prefix_sharing=False),
        Case("late", 1, 20),
    )
    shape = TINY | {"quantization_config": device.FLOAT8}
    plan = Plan(shape, cases, short_tokens=1, long_tokens=3, repeats=1, linear_inputs="float8")
    ticks = iter(range(1000))
    lines: list[Line] = []
    told: list[str] = []
    with Output(echo=told.append) as output:
        found = device.measure(
            CONFIG, plan, 1e9, output, is_late=lambda: len(lines) == 2, clock=lambda: float(next(ticks) ** 2)
        )
        for line in found:
            lines.append(line)
    assert [line.case.name for line in lines] == ["one", "two constrained"]
    assert told == ["late: not measured: out of time", "two, not shared: not measured: out of time"]
    assert all(line.floor_us > 0 and line.num_replayed > 0 for line in lines)


def test_the_floor_counts_weights_and_distinct_keys(tmp_path: Any) -> None:
    model = ModelConfig.from_pretrained(device.write_shape(tmp_path, TINY))
    case = Case("x", 3, 50, shared_tokens=32)
    plan = replace(FULL, shape=TINY, short_tokens=10, long_tokens=20)
    weights = 2 * 32 * (2 + 1) * 16 + 3 * 32 * 48 + 1600 * 32
    kv = (32 + 3 * (18 + 15)) * 2 * 16
    assert device.floor_us(model, CONFIG, case, plan, 1e6) == pytest.approx(4 * (weights + kv))
    alone = replace(case, prefix_sharing=False)
    assert device.floor_us(model, CONFIG, alone, plan, 1e6) == pytest.approx(4 * (weights + 3 * (50 + 16) * 2 * 16))
    bfloat16 = replace(CONFIG, device="cuda", dtype="bfloat16", kv_dtype="float8")
    assert device.floor_us(model, bfloat16, case, plan, 1e6) == pytest.approx(2 * weights + kv)
    few_bits = ModelConfig.from_pretrained(device.write_shape(tmp_path, TINY | {"quantization_config": device.INT4}))
    head = 1600 * 32
    assert device.floor_us(few_bits, bfloat16, case, plan, 1e6) == pytest.approx((weights - head) / 2 + 2 * head + kv)


def test_the_full_plan_is_the_shape_that_it_says() -> None:
    assert (FULL.shape["num_hidden_layers"], FULL.shape["hidden_size"], FULL.shape["vocab_size"]) == (32, 4096, 128256)
    assert {case.num_rows for case in FULL.cases} >= {1, 8, 64, 128}
    assert any(case.constraint for case in FULL.cases)
    for plan in device.PLANS[1:]:
        assert {name: plan.shape[name] for name in FULL.shape} == FULL.shape
        assert {case.name.partition(", ")[0] for case in plan.cases} <= {case.name for case in FULL.cases}


def test_a_table_compares_the_cases_that_belong_together() -> None:
    plain, bound = Case("b", 4, 9), Case("b constrained", 4, 9, constraint=device.FREE_TEXT)
    shared, alone = Case("s", 4, 9, 8), Case("s, not shared", 4, 9, 8, prefix_sharing=False)
    speeds = {plain: 100.0, bound: 98.0, shared: 300.0, alone: 100.0, Case("b, float8", 4, 9): 150.0}
    lines = [Line(case, 4e6 / speed, 0.01, speed, 1000.0, 7, 2) for case, speed in speeds.items()]
    assert device.comparisons(lines) == [
        "b constrained / unconstrained throughput: 0.980",
        "shared / not shared throughput: 3.00",
        "b, float8 / floats throughput: 1.50",
    ]
    assert device.text_of(lines[0]).startswith("b ")
    assert "floor     1000 us (2% of it reached)  7 steps replayed, 2 not" in device.text_of(lines[0])


class Runtimes:
    """Stands in for the runtime: counts those that hold memory at a time."""

    alive = most = 0

    def __init__(self, config: RuntimeConfig) -> None:
        Runtimes.alive += 1
        Runtimes.most = max(Runtimes.most, Runtimes.alive)
        self.config, self.tokenizer = config, None

    def __enter__(self) -> Runtimes:
        return self

    def __exit__(self, *_: object) -> None:
        """What it holds is freed with the last reference to it."""

    def __del__(self) -> None:
        Runtimes.alive -= 1


def test_one_model_is_in_memory_at_a_time_and_a_case_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def line(runtime: Runtimes, case: Case, plan: Plan, floor: float, clock: Any) -> Line:
        if case.name == "bad":
            raise MemoryError("no room")
        return Line(case, 1.0, 0.0, 1.0, floor)

    monkeypatch.setattr(device, "Runtime", Runtimes)
    monkeypatch.setattr(device, "_line", line)
    cases = (Case("bad", 1, 9), Case("good", 1, 9), Case("alone", 1, 9, prefix_sharing=False))
    told: list[str] = []
    with Output(echo=told.append) as output:
        found = list(device.measure(CONFIG, replace(FULL, shape=TINY, cases=cases), 1e9, output))
    assert [each.case.name for each in found] == ["good", "alone"]
    assert told == ["FAILED bad: MemoryError: no room"]
    assert (Runtimes.most, Runtimes.alive) == (1, 0)


def test_the_pool_is_as_large_as_the_settings_say() -> None:
    def seven() -> int:
        return 7

    assert device._with_pool(RuntimeConfig(), seven).cache_bytes == 7
    assert device._with_pool(RuntimeConfig(num_pages=9), seven).cache_bytes is None
    assert device._with_pool(RuntimeConfig(cache_bytes=9), seven).cache_bytes == 9


@pytest.mark.parametrize(("free", "wanted"), [(1 << 40, device.CACHE_BYTES), (10 << 30, None), (0, 1)])
def test_the_pool_of_decoding_is_what_the_weights_leave(
    free: int, wanted: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Pretended, "free_bytes", lambda self: free, raising=False)
    monkeypatch.setattr(device, "accelerator_for", lambda name: Pretended())
    model = ModelConfig.from_pretrained(device.write_shape(tmp_path, TINY))
    left = free - 4 * (2 * 32 * (2 + 1) * 16 + 3 * 32 * 48 + 1600 * 32)  # the embedding is tied
    assert device._cache_bytes(CONFIG, model) == (int(device.CACHE_SHARE * left) if wanted is None else wanted)


class Idle:
    """A runtime with so many pages that nothing runs on."""

    config = CONFIG

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages

    def stats(self) -> dict[str, int]:
        return {"num_pages": self.num_pages, "num_steps_replayed": 0, "num_steps_eager": 0}

    def clear_cache(self) -> None:
        """Nothing is cached."""


def test_a_case_that_the_pool_does_not_hold_is_not_measured() -> None:
    case = Case("x", 5, 50, shared_tokens=33)
    plan = replace(FULL, long_tokens=20)
    assert device.pages_needed(case, plan, 16) == 2 + 5 * 3
    assert device.pages_needed(replace(case, prefix_sharing=False), plan, 16) == 5 * 5

    runtime: Any = Idle(16)
    with pytest.raises(MemoryError, match="17 KV pages are needed, but the pool has only 16"):
        device._line(runtime, case, plan, 1.0, lambda: 0.0)


def test_noise_is_no_time_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    took = iter([9.0, 2.0, 1.0, 2.0, 2.5, 2.0, 1.5])  # the warm-up, then the short and the long run in turn
    monkeypatch.setattr(device, "_graphs", lambda *_: ())
    monkeypatch.setattr(device, "run_on_target", lambda *_, clock: SimpleNamespace(total_s=next(took)))
    runtime: Any = Idle(999)
    with pytest.raises(ArithmeticError, match="144 tokens took no longer than 16: -3906 us/step"):
        device._line(runtime, Case("x", 1, 9), FULL, 1.0, lambda: 0.0)
    took = iter([9.0, 2.0, 2.128, 2.0, 2.256, 2.0, 2.384])
    line = device._line(runtime, Case("x", 4, 9), FULL, 1.0, lambda: 0.0)
    assert (line.step_us, line.spread, line.tokens_per_s) == pytest.approx((2000.0, 1.0, 2000.0))


def test_prompts_are_computed_once_so_that_all_rows_decode_together() -> None:
    ticks = iter(range(1000))
    plan = replace(FULL, short_tokens=2, long_tokens=6, repeats=2)
    with Runtime(num_threads=1) as runtime:
        device._line(runtime, Case("x", 3, 100), plan, 1.0, lambda: float(next(ticks) ** 2))
        stats = runtime.stats()
    assert stats["num_prompt_tokens"] == 5 * 3 * 100
    assert stats["num_cached_tokens"] >= 4 * 3 * (100 - runtime.config.page_size)


class Pretended:
    """A GPU that is not there."""

    device, num_released = torch.device("cpu"), 0

    def release(self) -> None:
        Pretended.num_released += 1


@pytest.mark.parametrize("is_right", [True, False])
def test_a_run_goes_on_after_what_fails(is_right: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = table.Line("decode", "bfloat16 x", 2.0, 0.1, 3.0, 1.0, {"SDPA": 4.0}, 1e-3)

    def broken() -> Any:
        raise RuntimeError("out of memory")

    tasks = [device_run.Task("a", lambda: iter([line])), device_run.Task("b", broken), device_run.Task("c", broken)]
    decoded = [Line(Case("batch 1", 1, 9), 10.0, 0.1, 5.0, 5.0, 3, 1)]
    monkeypatch.setattr(device, "accelerator_for", lambda name: Pretended())
    monkeypatch.setattr(device, "check", lambda config, tell: is_right)
    monkeypatch.setattr(
        device.device_families,
        "run",
        lambda config, output, families, is_late: output.write(f"families {next(families)} {is_late()}"),
    )
    monkeypatch.setattr(device, "measure", lambda *args, **given: iter(decoded))
    monkeypatch.setattr(device.check_process, "run", lambda output, *_: output.write("check x: error 0"))
    monkeypatch.setattr(device_run, "environment", lambda device: "a GPU")
    monkeypatch.setattr(device_run, "measure_ceilings", lambda *_: device_cases.Ceilings(1e12, 1e14, 2.0, 1 << 25))
    monkeypatch.setattr(device_run, "tasks", lambda *_: iter(tasks))
    begun: list[bool] = []
    monkeypatch.setattr(device.precompile, "start_background_compile", lambda config: begun.append(True))
    times = iter([0.0, 1.0, 1.0, 1.0, 300.0, 400.0, *[410.0] * 9])  # after two tasks the kernels' first part is over
    said: list[str] = []
    with Output(tmp_path / "out", tmp_path / "json", echo=said.append) as output:
        device.run(RuntimeConfig(dtype="float32"), output, plans=(FULL,), clock=lambda: next(times))
    assert said == (tmp_path / "out").read_text().splitlines()
    figures = [json.loads(text) for text in (tmp_path / "json").read_text().splitlines()]
    kinds = ["environment", "ceilings", "kernel", "decoding"]
    assert [figure["kind"] for figure in figures] == (kinds if is_right else kinds[:-1])
    assert (figures[0]["device"], figures[1]["launch_us"]) == ("a GPU", 2.0)
    assert figures[2]["peers"] == {"SDPA": 4.0}
    failed = [text for text in said if text.startswith("FAILED")]
    assert failed[-2:] == ["FAILED b: RuntimeError: out of memory", "FAILED c: RuntimeError: out of memory"]
    assert len(failed) == output.num_failed == (2 if is_right else 3)
    places = [
        said.index(text)
        for text in said
        if text.startswith(
            ("check x", "families gemma2", "copy 1.00", "decode ", "FAILED b", "families gpt_oss", "FAILED c")
        )
    ]
    assert places == sorted(places)
    assert len(places) == 7
    assert {"families gemma2 False", "families gpt_oss False", "check gpt2: not run: out of time"} <= {*said}
    assert any(text.startswith("batch 1 ") for text in said) == is_right
    assert said[-2].startswith("decode: ours/floor 2.00")
    assert Pretended.num_released >= 2
    assert begun == [True]


def test_what_a_server_needs_is_not_needed_to_measure() -> None:
    """Imports, and the command's own list of what it needs, where neither a schema library nor a server's is installed."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        env=os.environ | {"PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict.fromkeys(machine.DEVICE_PACKAGES, "1") | {"triton": None, "regex": None}
    monkeypatch.setattr("rtlang_bench.device.__main__.package_versions", lambda names: found)
    result = CliRunner().invoke(app, ["--device", "cuda"])
    assert result.exit_code == 1
    assert "packages are not installed: triton, regex" in result.output


def test_figures_without_a_gpu_are_refused_and_earlier_ones_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = CliRunner().invoke
    result = run(app, ["--device", "interpreter"])
    assert result.exit_code == 1
    assert "interpreted kernels cannot be benchmarked" in result.output
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    earlier = tmp_path / "earlier"
    earlier.write_text("figures of a GPU")
    result = run(app, ["--out", str(earlier), "--device", "cuda", "--json", f"{tmp_path}/figures"])
    assert result.exit_code == 1
    assert "torch finds no GPU" in result.output
    assert earlier.read_text() == "figures of a GPU"
    monkeypatch.setattr("rtlang_bench.device.__main__.accelerator_for", lambda name: None)
    for files in (
        ["--out", f"{tmp_path}/no/folder"],
        ["--out", str(tmp_path)],
        [f"--{name}={earlier}" for name in ("out", "json")],
    ):
        result = run(app, ["--device", "cuda", *files])
        assert result.exit_code == 1
        assert "error: --out or --json: " in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--dtype", "int3"], "dtype = 'int3'"),
        (["--budget-s", "inf"], "expected a finite number"),
        (["--device", "cpu"], "the CPU is measured by `rtlang bench`"),
    ],
)
def test_options_that_measure_nothing_are_refused(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert told in result.output
