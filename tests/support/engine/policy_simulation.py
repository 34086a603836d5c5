"""Simulated time: the real engine and scheduler on a runner whose steps take the time of a modelled machine.

    python -m tests.support.engine.policy_simulation

prints, for recorded kinds of load, what each policy does to the latency of programs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import StepOutput
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.planning.step_cost import StepSize, size_of
from rtlang.engine.requests.program_account import ProgramAccount
from rtlang.engine.requests.request import Request, RequestOutput, RequestSpec
from tests.support.engine.fake_runner import FakeFlight, FakeRunner
from tests.support.engine.open_constraint import OpenCompiler

NEVER = 10**9


def machine_s(size: StepSize) -> float:
    """A model of half a billion parameters on two cores: weights are read in 25 ms, a token takes 1.6 ms, a score 40 ns."""
    return max(0.025, 0.0016 * size.num_tokens) + 4e-8 * size.num_scores


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a program: tokens added to its context, and tokens generated."""

    num_prompt: int
    num_output: int


@dataclass(slots=True)
class SimulatedProgram:
    """Calls one after the other, each continuing the text before it.

    Attributes:
        arrival_s, kind: when it comes, and its name in the report.
        token_gaps_s: time between the tokens of its calls.
        first_step_s, end_s: when its first call began and its last one ended.
    """

    arrival_s: float
    kind: str
    calls: Sequence[Call]
    priority: int = 0
    token_gaps_s: list[float] = field(default_factory=list)
    first_step_s: float | None = None
    end_s: float | None = None

    @property
    def latency_s(self) -> float:
        assert self.end_s is not None
        return self.end_s - self.arrival_s


class TimedRunner(FakeRunner):
    """A fake runner whose clock moves by the time of each step."""

    now = 0.0

    def collect(self, flight: FakeFlight) -> StepOutput:
        self.now += machine_s(size_of(flight.step))
        return super().collect(flight)


class Simulation:
    """Runs programs to their end. `arrived` holds what the scheduler knows of them, by index in order of arrival."""

    def __init__(self, programs: Iterable[SimulatedProgram], *, num_pages: int = 20_000, **settings: Any) -> None:
        self.programs = sorted(programs, key=lambda each: each.arrival_s)
        config = RuntimeConfig(num_pages=num_pages, max_model_len=20_000, **settings)
        self.runner = TimedRunner(num_pages, config.page_size, max_model_len=20_000, eos_every=NEVER)
        compiler: Any = OpenCompiler()
        runner: Any = self.runner
        self.engine = Engine(config, LoadedModel(runner), compiler, lambda: None)
        self.arrived: dict[int, ProgramAccount] = {}
        self._texts: dict[int, list[int]] = {}
        self._last: dict[int, float] = {}
        self._next_token = 0

    def run(self) -> None:
        waiting = list(enumerate(self.programs))
        while waiting or self.engine.has_work:
            if not self.engine.has_work:
                self.runner.now = max(self.runner.now, waiting[0][1].arrival_s)
            while waiting and waiting[0][1].arrival_s <= self.runner.now:
                number, program = waiting.pop(0)
                self.arrived[number] = ProgramAccount(program.arrival_s)
                self._call(number, program, 0)
            started = self.runner.now
            outputs = self.engine.step(started)
            self.engine.note_time(self.runner.now - started)
            for output in outputs:
                output.request.spec.listener(output)

    def _call(self, number: int, program: SimulatedProgram, index: int) -> None:
        call = program.calls[index]
        text = self._texts.setdefault(number, [])
        for _ in range(call.num_prompt):
            self._next_token += 1
            text += [1000 + self._next_token]
        params = SamplingParams(max_tokens=call.num_output, min_tokens=call.num_output, ignore_eos=True)
        remaining = sum(each.num_prompt + each.num_output for each in program.calls[index + 1 :])

        def listen(output: RequestOutput) -> None:
            now = self.runner.now
            if output.token_ids:
                if number in self._last:
                    program.token_gaps_s.append(now - self._last[number])
                self._last[number] = now
                text.extend(output.token_ids)
            if output.is_last:
                assert output.error is None, output.error
                del self._last[number]
                if program.first_step_s is None:
                    program.first_step_s = request.stats.first_step_time
                if index + 1 < len(program.calls):
                    self._call(number, program, index + 1)
                else:
                    program.end_s = now

        spec = RequestSpec(
            prompt_ids=text,
            params=params,
            listener=listen,
            program=self.arrived[number],
            priority=program.priority,
            remaining_tokens=remaining,
        )
        request: Request = self.engine.add(spec, self.runner.now)


def office(num_programs: int, seconds_between: float, seed: int) -> list[SimulatedProgram]:
    """Arrivals at random times: questions, extractions from documents, agents, and now and then a very long document."""
    rng = random.Random(seed)
    now = 0.0
    programs = []
    for _ in range(num_programs):
        now += rng.expovariate(1 / seconds_between)
        kind = rng.choices(("question", "extraction", "agent", "book"), (50, 30, 15, 5))[0]
        calls = {
            "question": [Call(rng.randrange(20, 200), rng.randrange(10, 80))],
            "extraction": [Call(rng.randrange(300, 1500), rng.randrange(20, 60))],
            "agent": [Call(rng.randrange(50, 300), rng.randrange(10, 40)) for _ in range(rng.randrange(4, 12))],
            "book": [Call(rng.randrange(4000, 9000), rng.randrange(50, 150))],
        }[kind]
        programs.append(SimulatedProgram(now, kind, calls))
    return programs


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    print("load  policy           all: mean    p99   question: mean    p99   book: mean   gap: p99     max   makespan")
    for name, seconds_between in (("0.5", 4.0), ("0.8", 2.5), ("0.95", 2.1)):
        for policy in ("fcfs", "longest_prefix", "program"):
            programs = office(300, seconds_between, 1)
            Simulation(programs, policy=policy).run()
            latencies = [each.latency_s for each in programs]
            questions = [each.latency_s for each in programs if each.kind == "question"]
            books = [each.latency_s for each in programs if each.kind == "book"]
            gaps = [gap for each in programs for gap in each.token_gaps_s]
            print(
                f"{name:5} {policy:16} {mean(latencies):9.2f} {percentile(latencies, 0.99):6.1f} {mean(questions):16.2f} "
                f"{percentile(questions, 0.99):6.1f} {mean(books):12.1f} {percentile(gaps, 0.99):10.3f} {max(gaps):7.3f} "
                f"{max(each.end_s or 0.0 for each in programs):10.0f}"
            )


if __name__ == "__main__":
    main()
