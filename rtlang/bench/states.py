"""Counts the prompt tokens that a model with recurrent layers computes, beside a dense model with as many weights.

A sequence of a hybrid goes on only from a place where its state was kept. So its prefixes are shared as well as those of a dense model if
both compute as many tokens of the same prompts. What no engine can avoid is counted from the prompts themselves: `least_computed`.

Counts hardly depend on the machine, so they need one run. There are no times: a small model says nothing about them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.table import Table

from rtlang.bench.baselines.plain_graphs import running
from rtlang.bench.baselines.vllm_engine import VllmEngine
from rtlang.bench.checkpoint import SHAPES, write_random
from rtlang.bench.machine import Environment
from rtlang.bench.measure import Measurement, OutputKey, run_on_target
from rtlang.bench.workloads.prefixes import CASES
from rtlang.bench.workloads.text import Codec
from rtlang.bench.workloads.workload import Workload
from rtlang.cache.outline import OutlineNode
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.errors import RtlangError
from rtlang.model.loader import model_directory, pick_dtype
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.system_resources import num_cores
from rtlang.runtime.runtime import Runtime

HYBRID, DENSE, VLLM = "hybrid", "dense", "vLLM"
MODELS = {HYBRID: "qwen3.5-3m", DENSE: "qwen3-3m"}
"""The random models, keys of `checkpoint.SHAPES`."""
MAX_LEN = 8192
"""More tokens than any sequence of the workloads has."""
_MAX_NODES = 1 << 16
_HEADERS = (
    "workload",
    "side",
    "prompt tokens",
    "computed",
    "of dense",
    "fewer than without reuse",
    "found again",
    "computed twice",
    "states a request",
    "on a path",
)


class StateCounts(NamedTuple):
    """What a side kept in one run.

    Attributes:
        num_kept: states kept at places where others may go on.
        num_evicted: of these, given up to make room.
        num_on_path: largest number at the end on the way from the start of sequences to the end of one.
        num_replayed: computed tokens whose K and V were stored.
    """

    num_kept: int
    num_evicted: int
    num_on_path: int
    num_replayed: int


@dataclass(frozen=True, slots=True)
class Counts:
    """One workload on one side.

    Attributes:
        num_requests: generations.
        num_prompt_tokens: of all of them.
        num_computed: of these, tokens that went through the model.
        num_least: the same for an engine that finds every prefix again.
        states: None if the side has none, or does not tell.
        reason: why it did not run; the numbers are then 0.
    """

    workload: str
    side: str
    num_requests: int = 0
    num_prompt_tokens: int = 0
    num_computed: int = 0
    num_least: int = 0
    states: StateCounts | None = None
    reason: str | None = None

    @property
    def found_share(self) -> float:
        """The share of the tokens that earlier requests have computed and that were not computed again."""
        num_known = self.num_prompt_tokens - self.num_least
        return 1 - (self.num_computed - self.num_least) / num_known if num_known else 1.0

    @property
    def twice_share(self) -> float:
        """The share of the prompt tokens that were computed though an earlier request had computed them."""
        return (self.num_computed - self.num_least) / max(1, self.num_prompt_tokens)


@dataclass(frozen=True, slots=True)
class StatesReport:
    """The counts of all workloads on all sides, with the models and the machine."""

    environment: Environment
    summaries: tuple[str, ...]
    counts: tuple[Counts, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return True

    def of_dense(self, counts: Counts) -> float | None:
        """Computed tokens relative to those of the dense model; None without one."""
        dense = next((each for each in self.counts if (each.workload, each.side) == (counts.workload, DENSE)), None)
        return counts.num_computed / dense.num_computed if dense is not None and dense.num_computed else None

    def to_plain(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain}

    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        return [self._cells(each) for each in self.counts]

    def _cells(self, each: Counts) -> list[str]:
        if each.reason is not None:
            return [each.workload, each.side, *["-"] * (len(_HEADERS) - 2)]
        of_dense, states = self.of_dense(each), each.states
        return [
            each.workload,
            each.side,
            f"{each.num_prompt_tokens:,}",
            f"{each.num_computed:,}",
            "-" if of_dense is None else f"{of_dense:.3f}",
            f"{each.num_prompt_tokens / each.num_computed:.1f}x",
            f"{each.found_share:.1%}",
            f"{each.twice_share:.2%}",
            "-" if states is None else f"{states.num_kept / each.num_requests:.1f}",
            "-" if states is None else str(states.num_on_path),
        ]

    def to_tables(self) -> list[Table]:
        """The table for a terminal."""
        table = Table(title="prompt tokens that are computed", box=box.SIMPLE_HEAD, pad_edge=False)
        for index, name in enumerate(_HEADERS):
            table.add_column(name, justify="left" if index < 2 else "right")
        for row in self.rows():
            table.add_row(*row)
        return [table]

    def to_markdown(self) -> str:
        """The table and the facts as Markdown."""
        lines = [_HEADERS, ("---", "---", *["---:"] * (len(_HEADERS) - 2)), *self.rows()]
        return "\n".join([*("| " + " | ".join(line) + " |" for line in lines), "", *(f"- {x}" for x in self.facts())])

    def facts(self) -> list[str]:
        """What was counted, and where."""
        reasons = {f"{each.side}: not counted: {each.reason}": None for each in self.counts if each.reason is not None}
        return [
            *self.environment.facts(),
            *self.summaries,
            "found again: of the prompt tokens that earlier requests had computed, those that were not computed again; "
            "computed twice: the others, relative to all prompt tokens",
            "states: kept beside those of running requests, mean of all requests; on a path: at the end, the most between the "
            "start of sequences and the end of one",
            *self.notes,
            *reasons,
        ]


def least_computed(sequences: Iterable[tuple[Sequence[int], Sequence[int]]]) -> int:
    """The prompt tokens that an engine computes which finds every prefix of earlier requests again.

    The last token of a prompt is always computed, since its logits are needed. The last token of an output never is.

    Args:
        sequences: prompt and output of each request, in the order in which they run.
    """
    places: dict[tuple[int, int], int] = {}  # a trie: a place and a token lead to a place
    total = 0
    for prompt, output in sequences:
        at = num_new = 0
        for number, token_id in enumerate((*prompt, *output[:-1])):
            known = places.get((at, token_id))
            if known is None:
                known = places[at, token_id] = len(places) + 1
                num_new += number < len(prompt)
            at = known
        total += max(1, num_new)
    return total


def sequences_of(
    workload: Workload, outputs: dict[OutputKey, tuple[int, ...]], codec: Codec
) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Prompt and output of each request of a run, in an order in which they can run."""
    programs = running(replace(workload, arrivals_s=()), codec)
    while due := programs.take_due(0.0):
        for key in due:
            yield programs.start(key), outputs[key]
            programs.finish(key, list(outputs[key]), 0.0)


def most_on_path(nodes: Iterable[OutlineNode]) -> int:
    """The largest number of states on the way from the root to a node; `nodes` has parents first."""
    above: dict[int, int] = {}
    for node in nodes:
        above[node.node_id] = above.get(node.parent_id, 0) + len(node.states)
    return max(above.values(), default=0)


def run_states(
    config: RuntimeConfig,
    *,
    is_quick: bool = False,
    seed: int = 0,
    vllm_python: str | None = None,
    command: str = "rtlang bench --workload states",
    tell: Callable[[str], None] = lambda line: None,
) -> StatesReport:
    """Run the workloads of `workloads.prefixes` on a hybrid and on a dense model, and count.

    Args:
        config: settings of both; the random models are used in place of the embedded one. Another model is counted alone.
        is_quick: fewer levels, requests and turns.
        vllm_python: the Python of an environment with vLLM, which then runs the hybrid as well; None for none.
    Raises:
        ModelLoadError, ConfigError: a model cannot be loaded with these settings.
        RtlangError: a generation failed.
    """
    dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
    config = replace(config, dtype=dtype, num_threads=config.num_threads or num_cores())
    counts: list[Counts] = []
    summaries: dict[str, str] = {}
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        if config.model == EMBEDDED_MODEL:
            models = {side: _write(Path(scratch) / side, shape) for side, shape in MODELS.items()}
            about = ", ".join(f"{side}: {_about(shape)}" for side, shape in MODELS.items())
        else:
            models = {HYBRID: model_directory(config.model)}
            about = config.model_name
        for side, directory in models.items():
            tell(f"loading the {side} model")
            with Runtime(config=replace(config, model=str(directory))) as runtime:
                codec = runtime.tokenizer
                workloads = [make(codec, seed=seed, quick=is_quick) for make in CASES.values()]
                for workload in workloads:
                    tell(f"{side}: {workload.name}")
                    summaries[workload.name] = f"{workload.name}: {workload.summary}"
                    counts.append(_count(runtime, side, workload))
                if num_states := runtime.stats().get("num_states"):
                    notes.append(f"{side}: {num_states} states")
        if vllm_python is not None:
            tell("loading vLLM")
            counts += _on_vllm(vllm_python, models[HYBRID], config, workloads, codec)
    order = list(CASES)
    counts.sort(key=lambda each: order.index(each.workload))
    environment = Environment.of(command, about, dtype, config.num_threads)
    return StatesReport(environment, tuple(summaries.values()), tuple(counts), tuple(notes))


def _write(directory: Path, shape: str) -> Path:
    return write_random(directory, model_directory(EMBEDDED_MODEL), *SHAPES[shape])


def _about(shape: str) -> str:
    model_type, fields = SHAPES[shape]
    return f"random {model_type} of {fields['num_hidden_layers']} layers, hidden {fields['hidden_size']}"


def _count(runtime: Runtime, side: str, workload: Workload) -> Counts:
    """One run with an empty cache."""
    runtime.clear_cache()
    before = runtime.stats()
    found = run_on_target(runtime, workload.graphs)
    after = runtime.stats()
    states = None
    if after.get("num_states"):
        loop = runtime._running_loop()
        nodes = loop.run(lambda: loop.engine.cache.outline([], _MAX_NODES))
        num_kept, num_evicted, num_replayed = (
            after[name] - before[name]
            for name in ("num_cache_kept_states", "num_cache_evicted_states", "num_cache_replayed_tokens")
        )
        states = StateCounts(num_kept, num_evicted, most_on_path(nodes), num_replayed)
    return _counts(side, workload, found, runtime.tokenizer, states)


def _counts(
    side: str, workload: Workload, found: Measurement, codec: Codec, states: StateCounts | None = None
) -> Counts:
    return Counts(
        workload.name,
        side,
        len(found.outputs),
        found.prompt_tokens,
        found.prompt_tokens - found.cached_tokens,
        least_computed(sequences_of(workload, found.outputs, codec)),
        states,
    )


def _on_vllm(
    python: str, directory: Path, config: RuntimeConfig, workloads: Sequence[Workload], codec: Codec
) -> list[Counts]:
    """The counts of vLLM; where it does not serve the model, lines that say why."""
    longest = ModelConfig.from_pretrained(directory).max_position_embeddings
    num_threads = config.num_threads or num_cores()
    try:
        engine = VllmEngine(
            python, directory, dtype=config.dtype, num_threads=num_threads, max_model_len=min(longest, MAX_LEN)
        )
    except RtlangError as error:
        return [Counts(each.name, VLLM, reason=str(error)) for each in workloads]
    with closing(engine):
        return [_counts(f"{VLLM} {engine.version}", each, engine.run(each, codec), codec) for each in workloads]
