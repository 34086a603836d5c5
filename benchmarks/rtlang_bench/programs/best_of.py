"""Measures the best of 16 candidates against one generation, over a long prompt: they share its prefix, so little may be added.

The model has the shape of a 0.5B decoder with random weights, unless another one is given. Both take turns, each with an empty prefix
cache. The time until the first token is that of the prompt; the rest, divided by the tokens of one candidate, is that of one decoding step.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from rich import box
from rich.table import Table as RichTable

from rtlang.bench.checkpoint import HALF_BILLION, TOKENIZER_FILES
from rtlang.bench.language import users_program
from rtlang.bench.machine import Environment
from rtlang.bench.workloads.text import TextMaker
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.lang.best_of import best_of
from rtlang.lang.program_state import expr as rt
from rtlang.model.loader import model_directory, pick_dtype
from rtlang.runtime.runtime import Runtime
from rtlang_bench.programs.meter import checked
from rtlang_bench.programs.report import Mark, Spread

BEST_OF = "best_of"
"""The name of this workload."""
SHAPE: dict[str, Any] = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    **HALF_BILLION,
    "bos_token_id": None,
    "eos_token_id": 1,
}
NUM_CANDIDATES, PROMPT_TOKENS, OUTPUT_TOKENS, LIMIT = 16, 1_900, 32, 1.6
_HEADERS = ("", "s (min-max)", "CPU s", "prompt s", "step ms")


@users_program
def one(s: Any, text: str, num_tokens: int) -> None:
    """A single generation."""
    s += rt.text(text)
    s += rt.gen("out", max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True, temperature=1.0, seed=1)


@users_program
def many(s: Any, text: str, num_tokens: int) -> None:
    """The likeliest of several."""
    s += rt.text(text)
    s += best_of(
        NUM_CANDIDATES,
        rt.gen("out", max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True, temperature=1.0, seed=1),
    )


@dataclass(frozen=True, slots=True)
class Timed:
    """The times of one side: of the whole program, of its prompt, and of one decoding step, in seconds."""

    total_s: Spread
    cpu_s: float
    prompt_s: float
    step_s: float


@dataclass(frozen=True, slots=True)
class BestOfReport:
    """Both sides, their ratio over the pairs of runs, and the environment."""

    environment: Environment
    num_pairs: int
    prompt_tokens: int
    output_tokens: int
    one: Timed
    many: Timed
    ratio: Spread
    cpu_ratio: Spread

    @property
    def mark(self) -> Mark:
        """The ratio of wall-clock times and its limit."""
        text = f"time of the best of {NUM_CANDIDATES}, divided by that of one generation"
        return Mark(text, self.ratio.median, LIMIT, is_least=False, is_ratio=True)

    @property
    def is_met(self) -> bool:
        """Whether the mark is met."""
        return self.mark.is_met

    def to_plain(self) -> dict[str, Any]:
        """The report as maps, lists and scalars."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain, "marks": [{**asdict(self.mark), "is_met": self.is_met}]}

    def to_tables(self) -> list[RichTable]:
        """The two sides as a table for the terminal."""
        table = RichTable(title="best of 16 against one", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for index, header in enumerate(_HEADERS):
            table.add_column(header, justify="left" if index == 0 else "right", no_wrap=True)
        for cells in self._rows():
            table.add_row(*cells)
        return [table]

    def to_markdown(self) -> str:
        """The table as markdown, followed by the facts."""
        lines = ["| " + " | ".join(_HEADERS) + " |", "|---|" + "---:|" * (len(_HEADERS) - 1)]
        lines += ["| " + " | ".join(cells) + " |" for cells in self._rows()]
        return "\n".join([*lines, "", *(f"- {line}" for line in self.facts())]) + "\n"

    def facts(self) -> list[str]:
        """The setup, the machine and the target figure of the measurement; one line per fact."""
        added = self.many.total_s.median - self.one.total_s.median
        in_prompt = self.many.prompt_s - self.one.prompt_s
        return [
            *self.environment.facts(
                f"prompt {self.prompt_tokens}, {self.output_tokens} out", f"pairs of runs: {self.num_pairs}"
            ),
            f"by processor time {self.cpu_ratio.median:.2f}x ({self.cpu_ratio.low:.2f}-{self.cpu_ratio.high:.2f}); of {added:.1f} s "
            f"added, {in_prompt:.1f} s are in the prompt and {added - in_prompt:.1f} s in the decoding steps",
            str(self.mark),
        ]

    def _rows(self) -> list[list[str]]:
        sides = (("one", self.one), (f"best of {NUM_CANDIDATES}", self.many))
        return [
            [
                name,
                f"{side.total_s.median:.2f} ({side.total_s.low:.2f}-{side.total_s.high:.2f})",
                f"{side.cpu_s:.2f}",
                f"{side.prompt_s:.2f}",
                f"{side.step_s * 1000:.1f}",
            ]
            for name, side in sides
        ]


def run_best_of(
    config: RuntimeConfig,
    *,
    is_quick: bool = False,
    repeats: int | None = None,
    command: str = "python -m rtlang_bench.programs --workload best_of",
    tell: Callable[[str], None] = lambda line: None,
) -> BestOfReport:
    """Measure the mark of `rt.best_of`.

    Args:
        config: settings of the runtime. If `model` is the embedded model, a model of SHAPE with random weights is used instead; with
            `is_quick` the embedded one, a short prompt and one pair of runs.
        repeats: pairs of runs; default 3.
    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded with these settings.
        RtlangError: a program failed, so there are no figures.
    """
    num_pairs = repeats or (1 if is_quick else 3)
    num_prompt, num_output = (64, 4) if is_quick else (PROMPT_TOKENS, OUTPUT_TOKENS)
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        model = config.model
        if model == EMBEDDED_MODEL and not is_quick:
            model = "0.5B shape (24 layers, hidden 896, vocabulary 151936), random weights"
            config = replace(config, model=str(_written(Path(scratch))), weights="dummy")
        tell("loading the model")
        with Runtime(config=config) as runtime:
            maker = TextMaker(runtime.tokenizer, 0)
            inputs = {"text": maker.text(num_prompt, is_start=True), "num_tokens": num_output}
            tell("warm-up")
            warm = {"text": maker.text(32, is_start=True), "num_tokens": 2}
            for program in (one, many):
                _timed(runtime, program, warm)
            pairs = []
            for number in range(1, num_pairs + 1):
                tell(f"pair {number} of {num_pairs}")
                pairs.append((_timed(runtime, one, inputs), _timed(runtime, many, inputs)))
    dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
    return BestOfReport(
        environment=Environment.of(command, model, dtype, config.num_threads),
        num_pairs=num_pairs,
        prompt_tokens=num_prompt,
        output_tokens=num_output,
        one=_side([pair[0] for pair in pairs], num_output),
        many=_side([pair[1] for pair in pairs], num_output),
        ratio=Spread.of(pair[1][0] / pair[0][0] for pair in pairs),
        cpu_ratio=Spread.of(pair[1][1] / pair[0][1] for pair in pairs),
    )


_Times = tuple[float, float, float]
"""Seconds of a program, of processor time, and until its first token, as the mean of its requests."""


def _timed(runtime: Runtime, program: Any, inputs: dict[str, Any]) -> _Times:
    runtime.clear_cache()
    before, cpu_before, started = _waited(runtime), process_time(), perf_counter()
    checked([program.run(**inputs, runtime=runtime, on_error="result")])
    total_s, cpu_s = perf_counter() - started, process_time() - cpu_before
    after = _waited(runtime)
    return total_s, cpu_s, (after[0] - before[0]) / (after[1] - before[1])


def _waited(runtime: Runtime) -> tuple[float, float]:
    """Seconds that all requests together waited for their first token, and their number."""
    total, count = (
        runtime.metrics.registry.get_sample_value(f"rtlang_time_to_first_token_seconds_{part}")
        for part in ("sum", "count")
    )
    return total or 0.0, count or 0.0


def _side(times: list[_Times], num_output: int) -> Timed:
    prompt_s = median(each[2] for each in times)
    step_s = median(each[0] - each[2] for each in times) / max(1, num_output - 1)
    return Timed(Spread.of(each[0] for each in times), median(each[1] for each in times), prompt_s, step_s)


def _written(directory: Path) -> Path:
    """A model directory with the configuration of SHAPE and the tokenizer of the embedded model."""
    for name in TOKENIZER_FILES:
        shutil.copyfile(model_directory(EMBEDDED_MODEL) / name, directory / name)
    (directory / "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")
    return directory
