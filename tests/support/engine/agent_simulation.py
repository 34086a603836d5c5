"""Agents in simulated time: the real engine and cache on a runner whose steps take the time of a modelled machine.

    python -m tests.support.engine.agent_simulation

prints, for pools that hold all agents or a part of them, the cached share of returning tokens and the seconds to the first token, with
plain LRU, with inferred sessions off, and with inferred sessions.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.runs.session_options import SessionOptions
from rtlang.contract.step import Row, SampledRow, SampledToken, Step, StepOutput
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.planning.step_cost import size_of
from rtlang.engine.requests.request import RequestOutput, RequestSpec
from tests.support.engine.fake_runner import FakeFlight, FakeRunner
from tests.support.engine.open_constraint import OpenCompiler

PAGE_SIZE = 16
NUM_KINDS = 3
CALLS, FINAL = 3 + ord("c"), 3 + ord("f")
_OPTIONS = SessionOptions(call_marks=("c",))


@dataclass(frozen=True, slots=True)
class Turn:
    """Tokens that are added to the context, tokens of the reply, the time of the tool, and the turns of a sub-agent that it starts."""

    num_new: int
    num_output: int
    delay_s: float
    fork: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """An agent: its kind, which has a system prompt, and its turns; the last one ends in an answer."""

    kind: int
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """A trace. Tokens are scaled down by one factor and delays by another, as in `rtlang bench agents`."""

    num_tasks: int = 30
    num_turns: int = 43
    scale: float = 1 / 40
    num_output: int = 64
    speed: float = 10.0
    fork_share: float = 0.05
    system_tokens: float = 12_000
    last_tokens: float = 142_000


def make_tasks(sizes: Sizes, seed: int) -> list[Task]:
    """The tasks of a trace; the same for the same seed."""
    rng = random.Random(seed)
    mean = (sizes.last_tokens - sizes.system_tokens) * sizes.scale / sizes.num_turns

    def turns(count: int, *, may_fork: bool) -> Iterator[Turn]:
        for number in range(count):
            num_new = mean * (3 if number == 0 and may_fork else rng.lognormvariate(-0.5, 1.0))
            delay_s = min(60.0, max(0.2, rng.lognormvariate(math.log(2.0), 1.3))) / sizes.speed
            fork = ()
            if may_fork and rng.random() < sizes.fork_share:
                fork = tuple(turns(4, may_fork=False))
            yield Turn(max(8, round(num_new)), sizes.num_output, delay_s, fork)

    return [
        Task(
            index % NUM_KINDS,
            tuple(turns(max(2, round(sizes.num_turns * rng.lognormvariate(-0.045, 0.3))), may_fork=True)),
        )
        for index in range(sizes.num_tasks)
    ]


def own_tokens(task: Task) -> int:
    """Tokens of a task at its largest without its system prompt, with those of its sub-agents."""
    return sum(each.num_new + each.num_output for turn in task.turns for each in (turn, *turn.fork))


@dataclass(slots=True)
class Figures:
    """Figures of a replay: returning tokens and cached ones over all turns; seconds to the first token of first and of later turns."""

    num_returning: int = 0
    num_cached: int = 0
    num_computed: int = 0
    first_s: list[float] = field(default_factory=list)
    later_s: list[float] = field(default_factory=list)
    end_s: float = 0.0

    @property
    def cached_share(self) -> float:
        return self.num_cached / max(1, self.num_returning)

    @property
    def p99_s(self) -> float:
        return percentile([*self.first_s, *self.later_s], 0.99)


class AgentRunner(FakeRunner):
    """A runner whose clock moves by the modelled time of each step, and which samples what the row's seed says."""

    now = 0.0
    token_s, step_s = 1e-4, 4e-3

    def launch(self, step: Step) -> FakeFlight:
        return FakeFlight(step)

    def sample(self, flight: FakeFlight, rows: Sequence[Row], bitmask: Any, walks: object = None) -> None:
        outputs = []
        for row in rows:
            token = FINAL if row.seed % 2 else CALLS
            outputs.append(SampledRow(tuple(SampledToken(token) for _ in range(row.num_sampled)), (), True))
        flight.result = StepOutput(flight.step.step_id, tuple(outputs))

    def collect(self, flight: FakeFlight) -> StepOutput:
        size = size_of(flight.step)
        self.now += max(self.step_s, self.token_s * size.num_tokens) + 2e-9 * size.num_scores
        return super().collect(flight)


class AgentSimulation:
    """Runs tasks, so many at a time, in a pool of so many pages. `see` is called with the engine after each step."""

    def __init__(
        self,
        tasks: Sequence[Task],
        num_sessions: int,
        num_pages: int,
        sizes: Sizes,
        *,
        see: Callable[[Engine], None] | None = None,
        **settings: Any,
    ) -> None:
        longest = max(map(own_tokens, tasks)) + 2 * round(sizes.system_tokens * sizes.scale)
        config = RuntimeConfig(
            num_pages=max(num_pages, longest // PAGE_SIZE + 16),
            page_size=PAGE_SIZE,
            max_model_len=1 << 20,
            speculation="off",
            **settings,
        )
        self.runner: Any = AgentRunner(config.num_pages or 0, PAGE_SIZE, max_model_len=1 << 20)
        compiler: Any = OpenCompiler()
        self.engine = Engine(config, LoadedModel(self.runner), compiler, lambda: None)
        self.figures = Figures()
        self._sizes, self._see = sizes, see
        self._waiting = list(tasks)[::-1]
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._number, self._next_token = itertools.count(), 1000
        for worker in range(num_sessions):
            self._after(worker / sizes.speed, self._begin)

    def run(self) -> Figures:
        """Run all tasks to their ends."""
        runner, engine = self.runner, self.engine
        while self._timers or engine.num_requests:
            if not engine.has_work:
                later = [] if engine.retry_at is None else [engine.retry_at]
                runner.now = max(runner.now, min([*later, *(each[0] for each in self._timers[:1])]))
                engine.retry(runner.now)
            while self._timers and self._timers[0][0] <= runner.now:
                heapq.heappop(self._timers)[2]()
            started = runner.now
            for output in engine.step(started):
                output.request.spec.listener(output)
            engine.note_time(runner.now - started)
            if self._see is not None:
                self._see(engine)
        self.figures.end_s = runner.now
        return self.figures

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (self.runner.now + seconds, next(self._number), act))

    def _new(self, count: int) -> list[int]:
        self._next_token += count
        return list(range(self._next_token - count, self._next_token))

    def _begin(self) -> None:
        if self._waiting:
            task = self._waiting.pop()
            num_system = round(self._sizes.system_tokens * self._sizes.scale)
            system = [(1 << 28) + task.kind * num_system + place for place in range(num_system)]
            self._turn(system, 0, task.turns, self._begin)

    def _turn(self, text: list[int], num_known: int, turns: Sequence[Turn], then: Callable[[], None]) -> None:
        turn, rest = turns[0], turns[1:]
        prompt = [*text, *self._new(turn.num_new)]
        arrived, has_first = self.runner.now, False
        figures = self.figures

        def listen(output: RequestOutput) -> None:
            nonlocal has_first
            if output.token_ids and not has_first:
                has_first = True
                (figures.later_s if num_known else figures.first_s).append(self.runner.now - arrived)
            if not output.is_last:
                return
            assert output.error is None, output.error
            request = output.request
            num_cached = request.stats.num_cached_tokens
            figures.num_computed += len(prompt) - num_cached
            figures.num_returning += num_known
            figures.num_cached += min(num_known, num_cached)
            after = list(request.token_ids)

            def go_on() -> None:
                self._turn(after, len(after), rest, then)

            if not rest:
                self._after(0.0, then)
            elif turn.fork:
                self._after(0.0, lambda: self._turn(after, len(after), turn.fork, go_on))
            else:
                self._after(turn.delay_s, go_on)

        params = SamplingParams(max_tokens=turn.num_output, min_tokens=turn.num_output, ignore_eos=True)
        spec = RequestSpec(prompt_ids=prompt, params=params, listener=listen, seed=0 if rest else 1, session=_OPTIONS)
        self.engine.add(spec, self.runner.now)


def pool_pages(tasks: Sequence[Task], num_sessions: int, sizes: Sizes, factor: float) -> int:
    """Pages that hold all sessions at their largest, divided by a factor."""
    own = sum(map(own_tokens, tasks)) / len(tasks)
    return math.ceil((NUM_KINDS * sizes.system_tokens * sizes.scale + num_sessions * own) / factor / PAGE_SIZE)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


SIDES: dict[str, dict[str, Any]] = {
    "LRU": {"infer_sessions": False, "eviction": "recent"},
    "off": {"infer_sessions": False},
    "sessions": {},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--output", type=int, default=64)
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--token-us", type=float, default=100.0)
    parser.add_argument("--factors", default="1,3,10")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    AgentRunner.token_s = options.token_us * 1e-6
    sizes = Sizes(options.tasks, num_output=options.output, speed=options.speed)
    tasks = make_tasks(sizes, options.seed)
    print("pool side      cached   first: p50    p99   later: p50    p99   all: p99  computed  makespan   (took)")
    for factor in map(float, options.factors.split(",")):
        for side in options.sides.split(","):
            started = perf_counter()
            pages = pool_pages(tasks, options.sessions, sizes, factor)
            found = AgentSimulation(tasks, options.sessions, pages, sizes, **SIDES[side]).run()
            first, later = (
                [percentile(each, share) for share in (0.5, 0.99)] for each in (found.first_s, found.later_s)
            )
            print(
                f"{factor:4g} {side:9} {found.cached_share:7.2%} {first[0]:12.2f} {first[1]:6.2f} "
                f"{later[0]:12.2f} {later[1]:6.2f} {found.p99_s:10.2f} "
                f"{found.num_computed:9,} {found.end_s:9.1f} {perf_counter() - started:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
