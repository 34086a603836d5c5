"""The benchmark itself: runs the same workloads with the same weights, threads and dtype on the runtime and on the baseline.

    report = run_benchmark(RuntimeConfig(...), BenchOptions(is_quick=True), command="rtlang bench --quick")

Both sides live in one process and take turns (ours, baseline, ours, baseline, ...) after a warm-up of each. The prefix cache is emptied
before every run. In addition to the timed runs, a few greedy generations are compared in float32, where both sides must agree.
"""

from __future__ import annotations

import gc
import math
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time

import rtlang
from rtlang.bench import workloads
from rtlang.bench.baselines.openai_server import OpenAiServer
from rtlang.bench.baselines.static_batching import StaticBatching
from rtlang.bench.baselines.vllm_engine import VllmEngine
from rtlang.bench.checkpoint import SHAPES, num_weights, write_random
from rtlang.bench.machine import PeakMemory, package_versions, this_machine
from rtlang.bench.measure import Measurement, agreement, run_on_target
from rtlang.bench.report import Report, Row, compare
from rtlang.bench.speculation import SpeculationReport, run_speculation
from rtlang.bench.workloads import MAKERS, SPECULATE, USUAL, Workload
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import ConfigError
from rtlang.contract.graph import RequestGraph
from rtlang.contract.params import Constraint
from rtlang.model.loading.loader import model_directory, pick_dtype
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.system_resources import num_cores
from rtlang.runtime.runtime import Runtime
from rtlang_grammars import CompiledGrammar, RtlangBackend
from rtlang_kernels_bench.machine_rates import machine_rates

QUICK_BUDGET_S = 150.0
NUM_AGREEMENT_GRAPHS = 8
AGREEMENT_SEED = 1
BASELINES = {"transformers": "transformers static batching", "vllm": "vLLM"}
VLLM_MAX_MODEL_LEN = 4096
_REPORTED_PACKAGES = ("torch", "transformers")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure.

    Attributes:
        workloads: names of the workloads, keys of `workloads.MAKERS`.
        is_quick: use fewer requests where that does not change what is measured, and fewer repeats.
        repeats: pairs of runs of each workload; None means 3, or with is_quick as many of these as fit into QUICK_BUDGET_S.
        seed: seed of the generated prompts and lengths.
        batch_size: batch size of the baseline transformers.
        baseline: a key of BASELINES, or the URL of a server with OpenAI's completions that serves the same model.
        shape: the random model, a key of `checkpoint.SHAPES`, if no model is given.
        vllm_python: the Python of an environment with vLLM; default: that of this process.
    """

    workloads: tuple[str, ...] = USUAL
    is_quick: bool = False
    repeats: int | None = None
    seed: int = 0
    batch_size: int = 8
    baseline: str = "transformers"
    vllm_python: str = sys.executable
    shape: str = next(iter(SHAPES))

    def __post_init__(self) -> None:
        for name in self.workloads if self.workloads != (SPECULATE,) else ():
            if name not in MAKERS:
                raise ConfigError("workload", name, f"expected one of {', '.join(MAKERS)}, or {SPECULATE} alone")
        if not self.workloads:
            raise ConfigError("workload", "", f"expected one of {', '.join(MAKERS)}")
        if self.shape not in SHAPES:
            raise ConfigError("shape", self.shape, f"expected one of {', '.join(SHAPES)}")
        if self.baseline not in BASELINES and not self.is_server:
            raise ConfigError("baseline", self.baseline, f"expected {', '.join(BASELINES)} or http://HOST:PORT/v1")
        for field, number in (("repeats", self.repeats), ("batch_size", self.batch_size)):
            if number is not None and number < 1:
                raise ConfigError(field, number, "expected a positive integer")

    @property
    def is_server(self) -> bool:
        """Whether the baseline is the URL of a server."""
        return self.baseline.startswith(("http://", "https://"))

    @property
    def budget_s(self) -> float:
        """Time budget in seconds. The first pair of each workload is run even if it exceeds the budget."""
        return QUICK_BUDGET_S if self.is_quick and self.repeats is None else math.inf

    @property
    def num_repeats(self) -> int:
        if self.repeats is not None:
            return self.repeats
        return 3


def run_benchmark(
    config: RuntimeConfig,
    options: BenchOptions,
    *,
    command: str = "rtlang bench",
    tell: Callable[[str], None] = lambda line: None,
) -> Report | SpeculationReport:
    """Run the benchmark and return its figures; the workload SPECULATE has figures of its own.

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
            command=command,
            tell=tell,
        )
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        if config.model == EMBEDDED_MODEL:
            tell("writing the random benchmark model")
            model_type, shape = SHAPES[options.shape]
            directory = write_random(Path(scratch) / "model", model_directory(EMBEDDED_MODEL), model_type, shape)
            model = (
                f"random {model_type} of {shape['num_hidden_layers']} layers, hidden {shape['hidden_size']}, "
                f"vocabulary {shape['vocab_size']}"
            )
        else:
            directory = model_directory(config.model)
            model = directory.name
        dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
        num_threads = config.num_threads or num_cores()
        config = replace(config, model=str(directory), dtype=dtype, num_threads=num_threads)
        tell("comparing greedy tokens in float32")
        equal, compared = _agreement_in_float32(config, options)
        rows, vllm_version = _measure_all(config, options, tell)
    versions = {"rtlang": rtlang.__version__, **package_versions(_REPORTED_PACKAGES)}
    if vllm_version is not None:
        versions["vllm"] = vllm_version
    return Report(
        command=command,
        machine=str(this_machine()),
        model=model,
        dtype=dtype,
        num_threads=num_threads,
        versions=versions,
        baseline=BASELINES.get(options.baseline, options.baseline),
        rows=rows,
        notes=_notes(options),
        fp32_equal=equal,
        fp32_compared=compared,
    )


class Sides:
    """Both engines, loaded. A context manager; owns the runtime."""

    def __init__(self, config: RuntimeConfig, options: BenchOptions) -> None:
        directory = Path(config.model)
        self.runtime = Runtime(config=config).start()
        self.tokenizer = self.runtime.tokenizer
        num_threads = config.num_threads or num_cores()
        self._other: VllmEngine | OpenAiServer | None = None
        self._static: StaticBatching | None = None
        if options.is_server:
            self._other = OpenAiServer(options.baseline)
        elif options.baseline == "vllm":
            self._other = VllmEngine(
                options.vllm_python,
                directory,
                dtype=config.dtype,
                num_threads=num_threads,
                max_model_len=min(VLLM_MAX_MODEL_LEN, ModelConfig.from_pretrained(directory).max_position_embeddings),
            )
        else:
            self._static = StaticBatching(
                directory,
                dtype=config.dtype,
                num_threads=num_threads,
                batch_size=options.batch_size,
                eos_token_ids=self.tokenizer.eos_token_ids,
            )
        self._num_weights, self._item_bytes = num_weights(directory), 4 if config.dtype == "float32" else 2
        self.rates = machine_rates(num_threads)
        vocab_size = ModelConfig.from_pretrained(directory).vocab_size
        self._backend = RtlangBackend.create(self.tokenizer.vocabulary(vocab_size))
        self._compiled: dict[Constraint, CompiledGrammar] = {}

    def close(self) -> None:
        """Stop both engines."""
        self.runtime.close()
        if self._other is not None:
            self._other.close()

    def run_ours(self, workload: Workload) -> Measurement:
        """One run with an empty prefix cache."""
        self.runtime.clear_cache()
        num_steps = self.runtime.stats()["num_steps"]
        measured = _with_costs(lambda: run_on_target(self.runtime, workload.graphs))
        return replace(measured, num_steps=self.runtime.stats()["num_steps"] - num_steps)

    def least_s(self, run: Measurement) -> float:
        """The time that the machine needs at least for one of our runs: for reading the weights once a step, or for the products."""
        rates, num_weights = self.rates, self._num_weights
        read_s = (run.num_steps or 0) * num_weights * self._item_bytes / rates.read_bytes_s
        return max(read_s, 2.0 * num_weights * run.num_computed_tokens / rates.operations_s)

    def run_baseline(self, workload: Workload) -> Measurement:
        """One run of the baseline."""
        if self._other is not None:
            return self._other.run(workload.graphs, self.tokenizer)
        assert self._static is not None
        static = self._static
        return _with_costs(lambda: static.run(workload.graphs, self.tokenizer, self._compile))

    @property
    def vllm_version(self) -> str | None:
        """The version of vLLM, if it is the baseline."""
        return self._other.version if isinstance(self._other, VllmEngine) else None

    def _compile(self, constraint: Constraint) -> CompiledGrammar:
        compiled = self._compiled.get(constraint)
        if compiled is None:
            compiled = self._compiled[constraint] = self._backend.compile(constraint)
        return compiled


def _measure_all(
    config: RuntimeConfig, options: BenchOptions, tell: Callable[[str], None], clock: Callable[[], float] = perf_counter
) -> tuple[tuple[Row, ...], str | None]:
    """Run pairs, one of each workload in turn, until there are enough or (with is_quick) the time is used up.

    Returns:
        The rows, and the version of vLLM if it is the baseline.
    """
    started = clock()
    tell(f"loading both sides, {config.dtype}, {config.num_threads} threads")
    with closing(Sides(config, options)) as sides:
        todo: dict[str, Workload] = {}
        for name in options.workloads:
            todo[name] = workloads.make(name, sides.tokenizer, seed=options.seed, quick=options.is_quick)
            tell(f"{name}: warm-up")
            # Different prompts with the same structure.
            warm = workloads.make(name, sides.tokenizer, seed=options.seed + 1, quick=options.is_quick)
            warm = replace(warm, graphs=_first_batch(warm, options.batch_size))
            sides.run_ours(warm)
            sides.run_baseline(warm)
        pairs: dict[str, list[tuple[Measurement, Measurement]]] = {name: [] for name in todo}
        lengths: dict[str, float] = {}
        for number in range(1, options.num_repeats + 1):
            for name, workload in todo.items():
                left = options.budget_s - (clock() - started)
                if number > 1 and lengths[name] > left:
                    continue
                tell(f"{name}: pair {number} of {options.num_repeats}")
                begun = clock()
                pairs[name].append((sides.run_ours(workload), sides.run_baseline(workload)))
                lengths[name] = clock() - begun
        vllm_version = sides.vllm_version
        rows = (
            compare(name, todo[name].summary, *zip(*pairs[name], strict=True), least_s=sides.least_s) for name in todo
        )
        return tuple(rows), vllm_version


def _first_batch(workload: Workload, size: int) -> tuple[RequestGraph, ...]:
    """The part of a workload that suffices to warm up the baseline: one batch of requests, or the first generation of a tree."""
    graphs = []
    for graph in workload.graphs[:size]:
        first = next(workloads.generations(graph))
        graphs.append(RequestGraph(graph.nodes[: graph.nodes.index(first) + 1]))
    return tuple(graphs)


def _agreement_in_float32(config: RuntimeConfig, options: BenchOptions) -> tuple[int, int]:
    """Number of greedy generations that are equal on both sides in float32, and number of those compared."""
    small = replace(options, workloads=("mixed",), is_quick=True, baseline="transformers")
    with closing(Sides(replace(config, dtype="float32"), small)) as sides:
        sample = workloads.make("mixed", sides.tokenizer, seed=AGREEMENT_SEED, quick=True)
        sample = replace(sample, graphs=sample.graphs[:NUM_AGREEMENT_GRAPHS])
        result = agreement(sides.run_ours(sample), sides.run_baseline(sample))
    gc.collect()  # free the float32 weights before peak memory is measured
    return result


def _with_costs(run: Callable[[], Measurement]) -> Measurement:
    peak = PeakMemory()
    peak.reset()
    started = process_time()
    measured = run()
    return replace(measured, cpu_s=process_time() - started, peak_bytes=peak.read_bytes())


def _notes(options: BenchOptions) -> tuple[str, ...]:
    if options.baseline == "vllm":
        about = "baseline: vLLM in a process of its own, its engine in that process and its prefix cache on; the sides take turns"
    elif options.is_server:
        about = "baseline: a server with OpenAI's completions, every request sent as soon as it can be; the sides take turns"
    else:
        about = (
            f"baseline: transformers, left-padded static batches of {options.batch_size}, sdpa, DynamicCache, logits of the last "
            "position only; both sides in one process, in turns, so a peak holds both sides' weights"
        )
    notes = [about]
    if "json" in options.workloads and options.baseline == "transformers":
        notes.append("json: the baseline masks its logits at every step with the same grammar library")
    notes.append(
        "of the machine: the time to read the weights once a step, or to multiply them with all computed tokens, at the rates measured in "
        "this run, relative to ours; attention, sampling and the KV cache are not in it"
    )
    notes.append(
        "tok/s: output tokens per second; p50, p99: seconds until a program ends; first: until its first token (median); MiB: peak "
        "resident memory; same: greedy texts equal on both sides (in bfloat16 the sides round differently, so texts drift apart)"
    )
    if options.is_quick and "mixed" in options.workloads:
        notes.append(f"quick: mixed has {workloads.QUICK_MIXED_REQUESTS} of {workloads.MIXED_REQUESTS} requests")
    return tuple(notes)
