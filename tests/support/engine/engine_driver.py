"""Drives an engine step by step in the test's thread, on any runner, and keeps what its requests got."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from tests.support.engine.fake_runner import naive_generate
from tests.support.engine.open_constraint import OpenCompiler


class EngineDriver:
    """An engine and its requests' texts and last outputs. Time is a count of steps. `rebuild` returns a runner or a future of one."""

    def __init__(self, runner: Any, config: RuntimeConfig, rebuild: Any = None, drafter: Any = None) -> None:
        self.runner = runner
        compiler: Any = OpenCompiler()

        def start_rebuild(num_failed: int) -> Future[Any]:
            made = rebuild(num_failed)
            if isinstance(made, Future):
                return made
            done: Future[Any] = Future()
            done.set_result(made)
            return done

        self.engine = Engine(
            config,
            LoadedModel(runner),
            compiler,
            lambda: None,
            check_every_step=True,
            rebuild=rebuild and start_rebuild,
            drafter=drafter,
        )
        self.now = 0.0
        self.last: dict[Request, RequestOutput] = {}
        self.text: dict[Request, str] = {}

    def add(self, tokens: list[int], max_tokens: int = 8, **rest: Any) -> Request:
        params = SamplingParams(max_tokens=max_tokens, **rest.pop("params", {}))
        spec = RequestSpec(prompt_ids=tokens, params=params, listener=self.listen, **rest)
        request = self.engine.add(spec, self.now)
        self.text[request] = ""
        return request

    def listen(self, output: RequestOutput) -> None:
        assert output.request not in self.last, "nothing may follow the last output"
        self.text[output.request] += output.text
        if output.is_last:
            self.last[output.request] = output

    def step(self) -> None:
        self.now += 1.0
        for output in self.engine.step(self.now):
            output.request.spec.listener(output)

    def run(self, limit: int = 5000) -> None:
        for _ in range(limit):
            if not self.engine.has_work:
                if self.engine.retry_at is None:
                    return
                self.now = max(self.now, self.engine.retry_at)
                self.engine.retry(self.now)
            self.step()
        raise AssertionError("the engine does not come to an end")

    def assert_idle(self) -> None:
        assert self.engine.num_requests == 0
        assert self.engine.cache.num_in_use == 0
        self.engine.scheduler.check()


class ExpectingDriver(EngineDriver):
    """A driver that knows the tokens of each request by naive generation: `outputs`."""

    def __init__(self, runner: Any, config: RuntimeConfig, **parts: Any) -> None:
        super().__init__(runner, config, **parts)
        self.outputs: dict[Request, list[int]] = {}

    def add(self, tokens: list[int], max_tokens: int = 8, **rest: Any) -> Request:
        request = super().add(tokens, max_tokens, **rest)
        self.outputs[request] = naive_generate(
            tokens,
            max_tokens,
            seed=request.spec.seed,
            choice=request.spec.choice,
            eos_every=self.runner.eos_every,
            min_tokens=request.spec.params.min_tokens,
        )
        return request
