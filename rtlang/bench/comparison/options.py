"""What to compare, and with what."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from rtlang.bench.checkpoint import SHAPES
from rtlang.bench.workloads.catalogue import ALONE, NAMES, STATES, STEPS, USUAL
from rtlang.contract.errors import ConfigError

QUICK_BUDGET_S = 150.0
TRANSFORMERS, VLLM, LLAMA_CPP = "transformers", "vllm", "llama.cpp"
BASELINES = {TRANSFORMERS: "transformers static batching", VLLM: "vLLM", LLAMA_CPP: "llama.cpp"}


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure.

    Attributes:
        workloads: names of the workloads, of `catalogue.NAMES`.
        is_quick: use fewer requests where that does not change what is measured, and fewer repeats.
        repeats: pairs of runs of each workload; None means 3, or with is_quick as many of these as fit into QUICK_BUDGET_S.
        seed: seed of the generated prompts and lengths.
        batch_size: batch size of the baseline transformers.
        baseline: a key of BASELINES, or the URL of a server with OpenAI's completions that serves the same model.
        shape: the random model, a key of `checkpoint.SHAPES`, if no model is given.
        cost_shape: for `speculate`, see `run_speculation`.
        vllm_python: the Python of an environment with vLLM; default: that of this process.
        llama_cpp: the folder of the shared libraries of llama.cpp, for that baseline.
        profiles: whether to run each workload again with timers.
    """

    workloads: tuple[str, ...] = USUAL
    is_quick: bool = False
    repeats: int | None = None
    seed: int = 0
    batch_size: int = 8
    baseline: str = TRANSFORMERS
    vllm_python: str = sys.executable
    llama_cpp: Path | None = None
    shape: str = next(iter(SHAPES))
    cost_shape: str | None = None
    profiles: bool = False

    def __post_init__(self) -> None:
        for name in self.workloads if not (len(self.workloads) == 1 and self.workloads[0] in ALONE) else ():
            if name not in NAMES:
                expected = f"expected one of {', '.join(NAMES)}, or {' or '.join(ALONE)} alone"
                raise ConfigError("workload", name, expected)
        if not self.workloads:
            raise ConfigError("workload", "", f"expected one of {', '.join(NAMES)}")
        if self.shape not in SHAPES:
            raise ConfigError("shape", self.shape, f"expected one of {', '.join(SHAPES)}")
        if self.baseline not in BASELINES and not self.is_server:
            raise ConfigError("baseline", self.baseline, f"expected {', '.join(BASELINES)} or http://HOST:PORT/v1")
        if self.workloads == (STEPS,) and self.baseline != LLAMA_CPP:
            raise ConfigError("baseline", self.baseline, f"expected {LLAMA_CPP} with the workload {STEPS}")
        if self.workloads == (STATES,) and self.baseline not in (TRANSFORMERS, VLLM):
            raise ConfigError("baseline", self.baseline, f"expected {VLLM} or none with the workload {STATES}")
        if self.baseline == LLAMA_CPP and (self.llama_cpp is None or not self.llama_cpp.is_dir()):
            raise ConfigError("llama_cpp", self.llama_cpp, "expected the folder of llama.cpp's shared libraries")
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
        return self.repeats or 3
