"""The benchmark itself: runs the same workloads with the same weights, threads and dtype on the runtime and on the baseline.

    report = run_benchmark(RuntimeConfig(...), BenchOptions(is_quick=True), command="rtlang bench --quick")

Both sides take turns (ours, baseline, ours, baseline, ...) after a warm-up of each. The prefix cache is emptied before every run. In
addition to the timed runs, a few greedy generations are compared in float32, where both sides must agree.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter

from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.bench.comparison.options import BASELINES, LLAMA_CPP, TRANSFORMERS, VLLM, BenchOptions
from rtlang.bench.comparison.report import Report, Row, compare
from rtlang.bench.comparison.sides import Sides
from rtlang.bench.comparison.step_profile import Profile, profile
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement, agreement
from rtlang.bench.speculation import SpeculationReport, run_speculation
from rtlang.bench.states import StatesReport, run_states
from rtlang.bench.steps import StepsReport, run_steps
from rtlang.bench.workloads import requests
from rtlang.bench.workloads.arriving import timed, without_times
from rtlang.bench.workloads.catalogue import SPECULATE, STATES, STEPS, make
from rtlang.bench.workloads.workload import Workload, generations
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.request_graph import RequestGraph
from rtlang.model.loader import model_directory, pick_dtype
from rtlang.model.loading.gguf.model_files import is_gguf
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.system_resources import num_cores

NUM_AGREEMENT_GRAPHS = 8
AGREEMENT_SEED = 1
MAX_LEN, MAX_LEN_BESIDE_LONG_PROMPT = 4096, 8192
_REPORTED_PACKAGES = ("torch", "transformers")

Tell = Callable[[str], None]


def run_benchmark(
    config: RuntimeConfig,
    options: BenchOptions,
    *,
    command: str = "rtlang bench",
    tell: Tell = lambda line: None,
) -> Report | SpeculationReport | StatesReport | StepsReport:
    """Run the benchmark and return its figures; the workloads SPECULATE, STATES and STEPS have figures of their own.

    Args:
        config: settings of our side; its dtype and number of threads apply to both. If `model` is the embedded model, the seeded
            random Llama of `checkpoint` is written to a temporary directory and used instead.
        command: the command line to show in the report.
        tell: called with a line of text when a part begins.
    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded with these settings.
        RtlangError: a generation failed, so there are no figures.
    """
    if options.workloads == (SPECULATE,):
        return run_speculation(
            config,
            is_quick=options.is_quick,
            repeats=options.repeats,
            seed=options.seed,
            cost_shape=options.cost_shape,
            command=command,
            tell=tell,
        )
    if options.workloads == (STATES,):
        return run_states(
            config,
            is_quick=options.is_quick,
            seed=options.seed,
            vllm_python=options.vllm_python if options.baseline == VLLM else None,
            command=command,
            tell=tell,
        )
    if options.baseline == LLAMA_CPP:
        path = model_directory(config.model)
        if not is_gguf(path):
            raise ConfigError("model", config.model, f"expected a GGUF file with the baseline {LLAMA_CPP}")
        config = replace(config, model=str(path))
        if options.workloads == (STEPS,):
            assert options.llama_cpp is not None
            return run_steps(
                config,
                libraries=options.llama_cpp,
                repeats=options.num_repeats,
                seed=options.seed,
                command=command,
                tell=tell,
            )
    import transformers

    transformers.utils.logging.disable_progress_bar()
    max_len = MAX_LEN_BESIDE_LONG_PROMPT if "longprompt" in options.workloads else MAX_LEN
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        if config.model == EMBEDDED_MODEL:
            tell("writing the random benchmark model")
            model_type, shape = SHAPES[options.shape]
            # The weights do not depend on the number of positions.
            positions = {"max_position_embeddings": max(max_len, shape["max_position_embeddings"])}
            directory = write_random(
                Path(scratch) / "model", model_directory(EMBEDDED_MODEL), model_type, {**shape, **positions}
            )
            model = (
                f"random {model_type} of {shape['num_hidden_layers']} layers, hidden {shape['hidden_size']}, "
                f"vocabulary {shape['vocab_size']}"
            )
        else:
            directory = model_directory(config.model)
            model = directory.name
        max_len = min(
            max_len, config.max_model_len or max_len, ModelConfig.from_pretrained(directory).max_position_embeddings
        )
        dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
        config = replace(config, model=str(directory), dtype=dtype, num_threads=config.num_threads or num_cores())
        equal = compared = 0
        if not is_gguf(directory):
            tell("comparing greedy tokens in float32")
            equal, compared = _agreement_in_float32(config, options)
        found = _measure_all(config, options, max_len, tell)
    environment = Environment.of(command, model, dtype, config.num_threads, _REPORTED_PACKAGES)
    if found.baseline_version is not None:
        environment = replace(environment, versions={**environment.versions, options.baseline: found.baseline_version})
    return Report(
        environment=environment,
        baseline=BASELINES.get(options.baseline, options.baseline),
        rows=found.rows,
        notes=_notes(options),
        fp32_equal=equal,
        fp32_compared=compared,
        profiles=found.profiles,
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    rows: tuple[Row, ...]
    profiles: tuple[Profile, ...]
    baseline_version: str | None


class _Job:
    """A workload and its runs so far, ours and the baseline's; without a baseline the latter stay empty.

    Each pair of runs has texts of its own, so nothing that a side keeps of earlier runs helps it.

    Args:
        make: the workload with texts from a seed.
        seed: of the first pair; the warm-up has the next.
    Attributes:
        workload: of the last pair.
        reason: why the baseline does not run it.
        pair_s: time of the last pair.
    """

    def __init__(self, sides: Sides, make: Callable[[int], Workload], seed: int, batch_size: int) -> None:
        self._sides, self._make, self._seed = sides, make, seed
        self.ours: list[Measurement] = []
        self.baseline: list[Measurement] = []
        self.pair_s = 0.0
        warm = make(seed + 1)
        self.reason = sides.reason_against(warm)
        if warm.arrival is None:
            warm = replace(warm, graphs=_first_batch(warm, batch_size))
        warm = without_times(warm)
        self._warm_runs = [sides.run_ours(warm)]
        if self.reason is None:
            self._warm_runs.append(sides.run_baseline(warm))
        self.workload = self.next_workload(0)

    def next_workload(self, number: int) -> Workload:
        """The workload of a pair, with the times of its arrivals."""
        seed = self._seed + number + (number > 0)
        return timed(self._make(seed), self._warm_runs, seed=seed)

    def more_runs(self, first: int) -> Callable[[], Callable[[], Measurement]]:
        """Makes runs of our side that are not kept, with texts of their own, as of pairs from number `first` on."""
        numbers = count(first)
        return lambda: partial(self._sides.run_ours, self.next_workload(next(numbers)))

    def run_pair(self, number: int, clock: Callable[[], float]) -> None:
        """Run pair number 0, 1, ..."""
        if number:
            self.workload = self.next_workload(number)
        started = clock()
        self.ours.append(self._sides.run_ours(self.workload))
        if self.reason is None:
            self.baseline.append(self._sides.run_baseline(self.workload))
        self.pair_s = clock() - started


def _measure_all(
    config: RuntimeConfig, options: BenchOptions, max_len: int, tell: Tell, clock: Callable[[], float] = perf_counter
) -> _Measured:
    """Run pairs, one of each workload in turn, until there are enough or (with is_quick) the time is used up."""
    started = clock()
    tell(f"loading both sides, {config.dtype}, {config.num_threads} threads")
    with closing(Sides(config, options, max_len=max_len)) as sides:
        jobs: list[_Job] = []
        for name in options.workloads:
            tell(f"{name}: warm-up")
            jobs.append(_Job(sides, partial(_made, name, sides, options, max_len), options.seed, options.batch_size))
        for number in range(options.num_repeats):
            for job in jobs:
                left = options.budget_s - (clock() - started)
                if number and job.pair_s > left:
                    continue
                tell(f"{job.workload.name}: pair {number + 1} of {options.num_repeats}")
                job.run_pair(number, clock)
        profiles: list[Profile] = []
        for job in jobs if options.profiles else ():
            tell(f"{job.workload.name}: where time goes")
            profiles.append(profile(sides.runtime, job.workload.name, job.more_runs(options.num_repeats)))
        rows = (compare(job.workload, job.ours, job.baseline, reason=job.reason, least_s=sides.least_s) for job in jobs)
        return _Measured(tuple(rows), tuple(profiles), sides.baseline_version)


def _made(name: str, sides: Sides, options: BenchOptions, max_len: int, seed: int) -> Workload:
    return make(name, sides.tokenizer, seed=seed, quick=options.is_quick, max_len=max_len)


def _first_batch(workload: Workload, size: int) -> tuple[RequestGraph, ...]:
    """The part of a workload that suffices to warm up the baseline: of one batch of graphs, what leads to the first generation, or to the
    first one with a constraint."""
    graphs = []
    for graph in workload.graphs[:size]:
        first, *others = generations(graph)
        last = next((each for each in (first, *others) if each.constraint is not None), first)
        graphs.append(RequestGraph(graph.nodes[: graph.nodes.index(last) + 1]))
    return tuple(graphs)


def _agreement_in_float32(config: RuntimeConfig, options: BenchOptions) -> tuple[int, int]:
    """Number of greedy generations that are equal on both sides in float32, and number of those compared."""
    small = replace(options, workloads=("mixed",), is_quick=True, baseline=TRANSFORMERS)
    with closing(Sides(replace(config, dtype="float32"), small, max_len=MAX_LEN)) as sides:
        sample = make("mixed", sides.tokenizer, seed=AGREEMENT_SEED, quick=True)
        sample = replace(sample, graphs=sample.graphs[:NUM_AGREEMENT_GRAPHS])
        result = agreement(sides.run_ours(sample), sides.run_baseline(sample))
    gc.collect()  # free the float32 weights before peak memory is measured
    return result


def _notes(options: BenchOptions) -> tuple[str, ...]:
    if options.baseline == VLLM:
        about = "baseline: vLLM in a process of its own, its engine in that process and its prefix cache on; the sides take turns"
    elif options.baseline == LLAMA_CPP:
        about = "baseline: llama.cpp in a process of its own, one context whose sequences share a cache and prefixes; the sides take turns"
    elif options.is_server:
        about = "baseline: a server with OpenAI's completions, every request sent as soon as it can be; the sides take turns"
    else:
        about = (
            f"baseline: transformers, left-padded static batches of {options.batch_size}, sdpa, DynamicCache, logits of the last "
            "position only; both sides in one process, in turns, so a peak holds both sides' weights"
        )
    notes = [about]
    if {"json", "judge"} & set(options.workloads) and options.baseline == TRANSFORMERS:
        notes.append("json, judge: the baseline masks its logits at every step with the same grammar library")
    notes.append(
        "of the machine: the time to read the weights once a step, or to multiply them with all computed tokens, at the rates measured in "
        "this run, relative to ours; attention, sampling, the KV cache and waiting are not in it"
    )
    notes.append(
        "tok/s: output tokens per second; the next three are medians / 99th percentiles: seconds from the arrival of a program to its end "
        "and to its first token, milliseconds between two outputs of a generation; MiB: peak resident memory; same: greedy texts equal on "
        "both sides (in bfloat16 the sides round differently, so texts drift apart)"
    )
    if options.is_quick and "mixed" in options.workloads:
        notes.append(f"quick: mixed has {requests.QUICK_MIXED_REQUESTS} of {requests.MIXED_REQUESTS} requests")
    return tuple(notes)
