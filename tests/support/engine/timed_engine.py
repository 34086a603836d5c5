"""A `TimedEngine` on a runner without a model, whose clock moves by the modelled time of each step."""

from __future__ import annotations

from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.engine.engine import Engine, LoadedModel
from rtlang_bench.arrivals.timed_engine import TimedEngine
from tests.support.engine.open_constraint import OpenCompiler
from tests.support.engine.policy_simulation import NEVER, TimedRunner


def pretended_engine(config: RuntimeConfig) -> TimedEngine:
    """Steps take the time of `machine_s`, and nothing else takes any."""
    runner: Any = TimedRunner(4000, config.page_size, max_model_len=20_000, eos_every=NEVER)
    compiler: Any = OpenCompiler()
    engine = Engine(config, LoadedModel(runner), compiler, lambda: None)
    return TimedEngine(engine, lambda number: 1000 + number, clock=lambda: runner.now)
