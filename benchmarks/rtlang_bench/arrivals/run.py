"""Runs the workloads: every setting in turns, on one loaded model, each run on an engine of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from rtlang.bench.checkpoint import write_random_llama
from rtlang.bench.workloads import load
from rtlang.bench.workloads.arriving import NUM_STREAMS
from rtlang.bench.workloads.load import ProgramLoad
from rtlang.contract.config import EMBEDDED_MODEL, MAX_TARGET_GAP_MS, RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.engine.constraints.compiler import ConstraintCompiler
from rtlang.engine.engine import Engine, LoadedModel
from rtlang.engine.planning.calibration import calibrated
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import model_directory
from rtlang.model.runner import Runner
from rtlang.runtime.process import process_settings
from rtlang_bench.arrivals.figures import GAP_GOAL, THROUGHPUT_GOAL, PlainSteps, RunFigures, figures_of
from rtlang_bench.arrivals.long_prompt import (
    LongPrompt,
    LongPromptFigures,
    long_prompt_figures,
    run_long_prompt,
)
from rtlang_bench.arrivals.timed_engine import TimedEngine
from rtlang_bench.figure import Figure

PLANNED = "planned"
FIXED_TOKENS = (128, 1024)
"""Tokens of a step of the fixed settings that the planner is compared with."""
LOADS = (0.5, 0.8, 0.95)
"""Shares of the measured capacity."""
URGENT_STEPS_GOAL = 2
_NUM_CLIENTS = 4
_MODEL_LEN = 16_384  # of the random model
_WARM_UP = 4
_WARM_ROWS = 32  # rows whose numbers, down to 1, load every compiled kernel of linear layers
_LEAST = 8  # programs of a run

Tell = Callable[[str], None]
Line = str | RunFigures | LongPromptFigures | Figure


@dataclass(frozen=True, slots=True)
class Sizes:
    """The amount of work of a benchmark.

    Attributes:
        num_programs: of each run.
        longest_prompt: of programs.
        long_prompt, num_streamed: of the workload `longprompt`: its prompt, and output tokens of each stream beside it.
        rounds: most turns of all settings.
        limit_s: time that everything should take, shared evenly by the workloads: there are fewer programs if one turn would take
            longer, and no further turn begins that would end later.
    """

    num_programs: int = 24
    longest_prompt: int = 4096
    long_prompt: int = 8000
    num_streamed: int = 192
    rounds: int = 2
    limit_s: float = 420.0


QUICK = Sizes(num_programs=6, longest_prompt=128, long_prompt=256, num_streamed=24, rounds=1)

WORKLOADS = ("poisson", "bursts", "clients", "longprompt")


def fixed(config: RuntimeConfig, num_tokens: int) -> RuntimeConfig:
    """A configuration whose steps take as many tokens as they can, up to `num_tokens`, also beside decoding rows."""
    return replace(
        config, max_step_tokens=num_tokens, max_shared_step_tokens=num_tokens, target_gap_ms=MAX_TARGET_GAP_MS
    )


class ArrivalsBench:
    """The runs on one loaded model.

    Args:
        config: of the planned setting.
        make_engine: an engine with other settings on the same model.
    """

    def __init__(
        self,
        config: RuntimeConfig,
        make_engine: Callable[[RuntimeConfig], TimedEngine],
        sizes: Sizes,
        *,
        seed: int = 0,
        tell: Tell = lambda line: None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._settings = {
            PLANNED: config,
            **{f"{each} tokens": fixed(config, each) for each in FIXED_TOKENS if each <= sizes.longest_prompt * 8},
        }
        self._make_engine, self._sizes, self._seed, self._tell, self._clock = make_engine, sizes, seed, tell, clock
        self._ends: list[float] = []  # times by which the workloads should end, the next one last
        self._target_gap_s = None if config.target_gap_ms is None else config.target_gap_ms / 1e3

    def lines(self, workloads: Sequence[str]) -> Iterator[Line]:
        """Run workloads; yields the lines of their tables and figures as they are known."""
        programs = load.at_once(self._sizes.num_programs, longest_prompt=self._sizes.longest_prompt, seed=self._seed)
        self._tell("warming up")
        every_count = [ProgramLoad(0.0, [load.Call(16, number + 1)]) for number in range(_WARM_ROWS)]
        self._make_engine(self._settings[PLANNED]).run(every_count)
        begin = self._clock()
        self._make_engine(self._settings[PLANNED]).run(programs[:_WARM_UP])
        token_s = (self._clock() - begin) / sum(each.num_tokens for each in programs[:_WARM_UP])
        arriving = [each for each in workloads if each != "longprompt"]
        num_compared = ("longprompt" in workloads) + bool(arriving) + sum(len(_loads(each)) for each in arriving)
        begin, limit = self._clock(), self._sizes.limit_s
        most = limit / (token_s * len(self._settings) * num_compared)
        while len(programs) > _LEAST and sum(each.num_tokens for each in programs) > most:
            programs.pop()
        self._ends = [begin + limit * number / num_compared for number in range(num_compared, 0, -1)]
        if arriving:
            yield from self._arriving(programs, arriving)
        if "longprompt" in workloads:
            yield from self._long_prompt()
        yield f"{len(programs)} programs in each run; took {self._clock() - begin:.0f} s"

    def _rounds(self) -> Iterator[int]:
        """Numbers of the turns of the next workload, as many as are expected to end in time."""
        begin, end = self._clock(), self._ends.pop()
        for number in range(self._sizes.rounds):
            now = self._clock()
            if number and now + (now - begin) / number > end:
                return
            yield number

    def _arriving(self, programs: Sequence[ProgramLoad], workloads: Sequence[str]) -> Iterator[Line]:
        yield RunFigures.HEAD
        at_once, best = self._compared("at once", programs)
        yield from at_once
        per_s = best * len(programs)
        for workload in workloads:
            for share in _loads(workload):
                name = f"{workload} {share:g}"
                if workload == "bursts":
                    arriving = load.bursts(programs, share * per_s, seed=self._seed)
                else:
                    arriving = load.poisson(programs, share * per_s, seed=self._seed)
                if workload == "clients":
                    arriving = load.of_clients(arriving, _NUM_CLIENTS)
                yield from self._compared(name, arriving)[0]

    def _compared(self, name: str, programs: Sequence[ProgramLoad]) -> tuple[list[Line], float]:
        """The lines of a workload, and how many times a second the planned setting runs it."""
        runs: dict[str, list[TimedEngine]] = {setting: [] for setting in self._settings}
        for number in self._rounds():
            for setting, config in self._settings.items():
                self._tell(f"{name}: {setting}, round {number + 1} of {self._sizes.rounds}")
                run = self._make_engine(config)
                run.run(programs)
                runs[setting].append(run)
        plain = PlainSteps([step for each in runs.values() for run in each for step in run.steps], self._target_gap_s)
        found = {setting: figures_of(name, setting, each, plain) for setting, each in runs.items()}
        best = max(each.output_tokens_per_s for setting, each in found.items() if setting != PLANNED)
        share = found[PLANNED].output_tokens_per_s / best
        figures = [
            Figure(f"{name} throughput", share, ">=", THROUGHPUT_GOAL, "", "of the best fixed setting"),
            Figure(f"{name} gap p99", found[PLANNED].gap[1], "<=", GAP_GOAL, "targets"),
            Figure(f"{name} steady gap p99", found[PLANNED].steady_gap, "<=", GAP_GOAL, "targets"),
        ]
        per_s = len(runs[PLANNED]) / sum(run.now for run in runs[PLANNED])
        return [*found.values(), *figures], per_s

    def _long_prompt(self) -> Iterator[Line]:
        sizes = self._sizes
        found: dict[str, list[LongPrompt]] = {setting: [] for setting in self._settings}
        for number in self._rounds():
            for setting, config in self._settings.items():
                self._tell(f"longprompt: {setting}, round {number + 1} of {sizes.rounds}")
                found[setting].append(run_long_prompt(self._make_engine(config), sizes.long_prompt, sizes.num_streamed))
        steps = [step for each in found.values() for one in each for step in one.run.steps]
        plain = PlainSteps(steps, self._target_gap_s)
        figures = {setting: long_prompt_figures(setting, each, plain) for setting, each in found.items()}
        planned = figures[PLANNED]
        yield LongPromptFigures.HEAD
        yield from figures.values()
        step_ms, noise = plain.seconds(NUM_STREAMS) * 1e3, plain.noise(NUM_STREAMS)
        yield f"a step of {NUM_STREAMS} streams alone: median {step_ms:.2f} ms, p99 {noise:.2f} of it"
        yield Figure("longprompt gap p99", planned.gap[1], "<=", GAP_GOAL, "targets")
        yield Figure("longprompt steady gap p99", planned.steady_gap, "<=", GAP_GOAL, "targets")
        for name, tokens_per_s in (
            ("longprompt throughput", attrgetter("tokens_per_s")),
            ("longprompt steady throughput", attrgetter("steady_tokens_per_s")),
        ):
            best = max(tokens_per_s(each) for setting, each in figures.items() if setting != PLANNED)
            share = tokens_per_s(planned) / best
            yield Figure(name, share, ">=", THROUGHPUT_GOAL, "", "of the best fixed setting")
        yield Figure("longprompt urgent start", planned.urgent_steps, "<=", URGENT_STEPS_GOAL, "steps")


def _loads(workload: str) -> tuple[float, ...]:
    """Shares of the capacity at which the programs of a workload arrive."""
    return LOADS if workload == "poisson" else (0.8,)


@contextmanager
def bench_model(config: RuntimeConfig) -> Iterator[RuntimeConfig]:
    """The configuration with a random Llama of 36 million parameters, if its model is the embedded one."""
    if config.model != EMBEDDED_MODEL:
        yield config
        return
    with TemporaryDirectory(prefix="rtlang-bench-") as folder:
        path = write_random_llama(
            Path(folder, "model"), model_directory(EMBEDDED_MODEL), max_position_embeddings=_MODEL_LEN
        )
        yield replace(config, model=str(path))


def measure(
    config: RuntimeConfig, workloads: Sequence[str], sizes: Sizes, *, seed: int = 0, tell: Tell = lambda line: None
) -> Iterator[Line]:
    """Load the model and run workloads; yields lines of tables and figures.

    Raises:
        ConfigError: the device is not the host, or a workload is unknown.
    """
    if config.device != "cpu":
        raise ConfigError("device", config.device, "expected cpu: steps are timed on the engine thread")
    for each in workloads:
        if each not in WORKLOADS:
            raise ConfigError("workload", each, f"expected some of {', '.join(WORKLOADS)}")
    with bench_model(config) as config:
        tell("loading the model")
        runner = HostRunner(config)
        runner.load()
        compiler = ConstraintCompiler(config, runner.tokenizer, runner.model_config.vocab_size)
        process_settings.begin()  # a full garbage collection takes as long as several steps
        try:
            longest = runner.max_model_len
            sizes = replace(
                sizes,
                longest_prompt=min(sizes.longest_prompt, longest - 1024),
                long_prompt=min(sizes.long_prompt, longest - 64),
            )
            make = engine_maker(runner, compiler, seed)
            yield from ArrivalsBench(config, make, sizes, seed=seed, tell=tell).lines(workloads)
        finally:
            process_settings.end()
            compiler.close()
            runner.close()


def engine_maker(runner: Runner, compiler: ConstraintCompiler, seed: int) -> Callable[[RuntimeConfig], TimedEngine]:
    """Makes engines on one runner, one after the other."""
    vocab_size = min(runner.tokenizer.vocab_size, runner.model_config.vocab_size)

    def make(config: RuntimeConfig) -> TimedEngine:
        rng = random.Random(seed)
        cost = calibrated(runner, config.page_size)
        engine = Engine(config, LoadedModel(runner, cost), compiler, lambda: None)
        return TimedEngine(engine, lambda number: rng.randrange(vocab_size // 100, vocab_size))

    return make


def sized(sizes: Sizes, num_programs: int | None, rounds: int | None) -> Sizes:
    """The sizes, with other numbers where they are given."""
    return replace(sizes, num_programs=num_programs or sizes.num_programs, rounds=rounds or sizes.rounds)
