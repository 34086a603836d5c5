"""The two engines of a comparison, loaded: ours and the baseline."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

from rtlang.bench.baselines.llama_cpp_engine import LlamaCppEngine
from rtlang.bench.baselines.openai_server import OpenAiServer
from rtlang.bench.baselines.static_batching import StaticBatching
from rtlang.bench.baselines.vllm_engine import VllmEngine
from rtlang.bench.checkpoint import num_weights, stored_bytes
from rtlang.bench.comparison.options import LLAMA_CPP, VLLM, BenchOptions
from rtlang.bench.machine import PeakMemory
from rtlang.bench.measure import Measurement, run_on_target
from rtlang.bench.workloads.workload import Workload
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import Constraint
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.system_resources import num_cores
from rtlang.runtime.runtime import Runtime
from rtlang_grammars import CompiledGrammar, RtlangBackend
from rtlang_kernels.cpu.codegen.tile_vectors import NO_TILES
from rtlang_kernels.cpu.machine_rates import machine_rates

_MAX_READ_BYTES = 1 << 30
_LLAMA_CPP_TOKENS = 32_768
"""Of its KV cache, which has no larger part for a sequence; it is allocated at once."""


class Sides:
    """Both engines, loaded. Owns the runtime and the baseline.

    Args:
        max_len: longest sequence of the workloads.
    """

    def __init__(self, config: RuntimeConfig, options: BenchOptions, *, max_len: int) -> None:
        directory = Path(config.model)
        self.runtime = Runtime(config=config).start()
        self.tokenizer = self.runtime.tokenizer
        num_threads = config.num_threads or num_cores()
        self._other: VllmEngine | OpenAiServer | LlamaCppEngine | None = None
        self._static: StaticBatching | None = None
        if options.is_server:
            self._other = OpenAiServer(options.baseline)
        elif options.baseline == VLLM:
            self._other = VllmEngine(
                options.vllm_python, directory, dtype=config.dtype, num_threads=num_threads, max_model_len=max_len
            )
        elif options.baseline == LLAMA_CPP:
            assert options.llama_cpp is not None
            cores = sorted(os.sched_getaffinity(0))[:num_threads]
            self._other = LlamaCppEngine(
                options.llama_cpp, directory, num_tokens=_LLAMA_CPP_TOKENS, num_threads=num_threads, cores=cores
            )
        else:
            self._static = StaticBatching(
                directory,
                dtype=config.dtype,
                num_threads=num_threads,
                batch_size=options.batch_size,
                eos_token_ids=self.tokenizer.eos_token_ids,
            )
        self._num_weights = num_weights(directory)
        self._step_bytes = stored_bytes(directory) or self._num_weights * (4 if config.dtype == "float32" else 2)
        self.rates = machine_rates(
            num_threads,
            read_bytes=min(_MAX_READ_BYTES, self._step_bytes),
            tiles=None if config.dtype == "bfloat16" else NO_TILES,
        )
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
        measured = _with_costs(lambda: run_on_target(self.runtime, workload.graphs, arrivals_s=workload.arrivals_s))
        return replace(measured, num_steps=self.runtime.stats()["num_steps"] - num_steps)

    def least_s(self, run: Measurement) -> float:
        """The time that the machine needs at least for one of our runs: for reading the weights once a step, or for the products."""
        rates, num_weights = self.rates, self._num_weights
        read_s = (run.num_steps or 0) * self._step_bytes / rates.read_bytes_s
        return max(read_s, 2.0 * num_weights * run.num_computed_tokens / rates.operations_s)

    def reason_against(self, workload: Workload) -> str | None:
        """Why the baseline cannot run a workload; None if it can."""
        if self._static is not None and workload.arrival is not None:
            return "a static batch takes no request while it runs"
        return self._other.reason_against(workload) if isinstance(self._other, LlamaCppEngine) else None

    def run_baseline(self, workload: Workload) -> Measurement:
        """One run of the baseline."""
        if self._other is not None:
            return self._other.run(workload, self.tokenizer)
        assert self._static is not None
        static = self._static
        return _with_costs(lambda: static.run(workload, self.tokenizer, self._compile))

    @property
    def baseline_version(self) -> str | None:
        """The version of vLLM or llama.cpp, if that is the baseline."""
        return self._other.version if isinstance(self._other, VllmEngine | LlamaCppEngine) else None

    def _compile(self, constraint: Constraint) -> CompiledGrammar:
        compiled = self._compiled.get(constraint)
        if compiled is None:
            compiled = self._compiled[constraint] = self._backend.compile(constraint)
        return compiled


def _with_costs(run: Callable[[], Measurement]) -> Measurement:
    peak = PeakMemory()
    peak.reset()
    started = process_time()
    measured = run()
    return replace(measured, cpu_s=process_time() - started, peak_bytes=peak.read_bytes())
