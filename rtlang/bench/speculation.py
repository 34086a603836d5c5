"""Measures the gain of drafts: each workload with and without them, in turns, on two runtimes with the same model.

Ratios are of processor time within one turn, so neither other processes nor drift of the machine's speed affects them. Each turn has new
texts, and begins with an empty prefix cache; the shares of right drafts and the texts of call sites are kept, as in a running server.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from rich import box
from rich.table import Table

from rtlang.bench.heavy_model import HeavyRuntime, load_heavy
from rtlang.bench.machine import Environment
from rtlang.bench.measure import run_on_target
from rtlang.bench.workloads.catalogue import AT_ONCE
from rtlang.bench.workloads.text import Encoder
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import Constraint, ConstraintKind, SamplingParams
from rtlang.contract.request_graph import Generate, RequestGraph, RoleEnd, RoleStart, Text
from rtlang.model.loader import pick_dtype
from rtlang.runtime.runtime import Runtime

LEAST_RATIO = 0.98
_HEAVY_PAGES = 1024
_HEADERS = (
    "workload",
    "at once",
    "tokens",
    "steps",
    "with drafts",
    "accepted",
    "tokens/s: ratio (min-max)",
    "same texts",
)

_NAMES = ("Nora", "Omar", "Kim Stone", "Hugo", "Ada", "Tom Reed", "Lena", "Ivan", "Rosa")
_ITEMS = ("wooden chairs", "red mugs", "candles", "lamps", "blue plates", "clocks")
_CITIES = ("Lima", "Cairo", "Vienna", "Oslo", "Rome", "Paris", "Quito")
_FORMS = (
    "Hello, this is {name} from {city}. I would like {count} {item} at {price} dollars each, please.",
    "Please send {count} {item} to {name} in {city}. The price is {price} dollars each.",
    "New order from {city}: {name} wants {count} {item} at {price} dollars.",
)
_TYPES = {"customer": "string", "item": "string", "quantity": "integer", "price": "number", "city": "string"}
_SCHEMA = Constraint(
    ConstraintKind.JSON_SCHEMA,
    json.dumps(
        {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in _TYPES.items()},
            "required": list(_TYPES),
            "additionalProperties": False,
        }
    ),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """One workload.

    Attributes:
        num_at_once: graphs that run at the same time.
        num_tokens: generated tokens of a turn.
        plain_steps, drafted_steps: steps of all turns, without and with drafts.
        accepted: share of the draft tokens that were right; None without any.
        ratios: tokens a second of processor time with drafts, relative to those without, of each turn.
        num_same, num_compared: texts that agree.
    """

    workload: str
    num_at_once: int
    num_tokens: int
    plain_steps: int
    drafted_steps: int
    accepted: float | None
    ratios: tuple[float, ...]
    num_same: int
    num_compared: int


@dataclass(frozen=True, slots=True)
class SpeculationReport:
    """The figures of all workloads, with the model and the machine."""

    environment: Environment
    figures: tuple[Figures, ...]

    @property
    def is_sound(self) -> bool:
        """Whether no text differs, in float32; in bfloat16 rounding may change one."""
        return self.environment.dtype != "float32" or all(each.num_same == each.num_compared for each in self.figures)

    def to_plain(self) -> dict[str, Any]:
        """The report as plain values."""
        plain = asdict(self)
        return {**plain.pop("environment"), **plain}

    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        return [
            [
                each.workload,
                str(each.num_at_once),
                f"{each.num_tokens:,}",
                f"{each.plain_steps:,}",
                f"{each.drafted_steps:,}",
                "-" if each.accepted is None else f"{each.accepted:.0%}",
                f"{median(each.ratios):.2f} ({min(each.ratios):.2f}-{max(each.ratios):.2f})",
                f"{each.num_same} of {each.num_compared}",
            ]
            for each in self.figures
        ]

    def to_tables(self) -> list[Table]:
        """The table for a terminal."""
        table = Table(*_HEADERS, box=box.SIMPLE_HEAD)
        for row in self.rows():
            table.add_row(*row)
        return [table]

    def to_markdown(self) -> str:
        """The table and the facts as markdown."""
        lines = ["| " + " | ".join(row) + " |" for row in (_HEADERS, ("---",) * len(_HEADERS), *self.rows())]
        return "\n".join([*lines, "", *(f"- {fact}" for fact in self.facts())])

    def facts(self) -> list[str]:
        """The model and the machine of the figures."""
        return [
            *self.environment.facts(),
            f"ratios by processor time, {len(self.figures[0].ratios)} turns; no workload should be below {LEAST_RATIO}",
        ]


def run_speculation(
    config: RuntimeConfig,
    *,
    is_quick: bool = False,
    repeats: int | None = None,
    seed: int = 0,
    cost_shape: str | None = None,
    command: str = "rtlang bench --workload speculate",
    tell: Callable[[str], None] = lambda line: None,
) -> SpeculationReport:
    """Run the benchmark and return its figures.

    Args:
        config: settings of both runtimes. With dtype "auto", float32 is used: then no text changes.
        is_quick: a few requests and one turn, which shows that all of it runs.
        repeats: turns; default 3.
        seed: seed of the texts.
        cost_shape: a key of `checkpoint.SHAPES`: each step also computes a random model of this shape, see `heavy_model`.
        command, tell: as for `run_benchmark`.
    Raises:
        ModelLoadError, ConfigError: the model cannot be loaded with these settings.
        RtlangError: a generation failed.
    """
    if config.dtype == "auto":
        config = replace(config, dtype="float32")
    num_turns = repeats or (1 if is_quick else 3)
    with ExitStack() as stack:
        make: Callable[[RuntimeConfig], Runtime] = _runtime
        if cost_shape is not None:
            config = replace(config, num_pages=config.num_pages or _HEAVY_PAGES)
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtlang-bench-")))
            heavy = load_heavy(config, cost_shape, scratch)
            make = partial(HeavyRuntime, heavy=heavy)
        plain, drafting = (stack.enter_context(make(replace(config, speculation=mode))) for mode in ("off", "on"))
        figures = []
        for index, (name, num_at_once) in enumerate(_CASES):
            if name in AT_ONCE and is_quick:
                continue  # they have no small size
            tell(f"{name}, {num_at_once} at once")
            # Other texts for each case: the call sites remember those of the cases before.
            own_seed = seed + 100_000 * index
            figures.append(_measured(name, num_at_once, plain, drafting, num_turns, own_seed, is_quick=is_quick))
    dtype = str(pick_dtype(config.dtype)).removeprefix("torch.")
    model = config.model if cost_shape is None else f"{config.model}, with the cost of a random {cost_shape} added"
    environment = Environment.of(command, model, dtype, config.num_threads)
    return SpeculationReport(environment, tuple(figures))


def _runtime(config: RuntimeConfig) -> Runtime:
    return Runtime(config=config)


def _measured(
    name: str, num_at_once: int, plain: Runtime, drafting: Runtime, num_turns: int, seed: int, *, is_quick: bool
) -> Figures:
    sides = (plain, drafting)
    steps, seconds = [0, 0], [0.0, 0.0]
    ratios: list[float] = []
    num_same = num_compared = num_tokens = 0
    before = drafting.stats()
    for turn in range(-1, num_turns):  # the first one warms up
        graphs = list(_graphs(name, plain.tokenizer, seed + 1000 * (turn + 1), is_quick=is_quick or turn < 0))
        texts: list[list[Sequence[int]]] = [[], []]
        for side in (0, 1) if turn % 2 else (1, 0):
            runtime = sides[side]
            runtime.clear_cache()
            first, started = runtime.stats()["num_steps"], process_time()
            for start in range(0, len(graphs), num_at_once):
                found = run_on_target(runtime, graphs[start : start + num_at_once])
                texts[side] += found.outputs.values()
            seconds[side] = process_time() - started
            if turn >= 0:
                steps[side] += runtime.stats()["num_steps"] - first
        if turn < 0:
            before = drafting.stats()
            continue
        lengths = [sum(map(len, each)) for each in texts]
        ratios.append(lengths[1] / seconds[1] / (lengths[0] / seconds[0]))
        num_tokens = lengths[0]
        num_compared += len(texts[0])
        num_same += sum(a == b for a, b in zip(*texts, strict=True))
    after = drafting.stats()
    drafted, accepted = (after[key] - before[key] for key in ("num_drafted_tokens", "num_accepted_tokens"))
    share = accepted / drafted if drafted else None
    return Figures(name, num_at_once, num_tokens, steps[0], steps[1], share, tuple(ratios), num_same, num_compared)


_CASES = (
    ("records", 1),
    ("sampled records", 1),
    ("copies", 1),
    ("stories", 1),
    ("records", 8),
    ("stories", 8),
    ("shared", 1000),
    ("tree", 1000),
    ("mixed", 1000),
    ("json", 1000),
)


def _graphs(name: str, encoder: Encoder, seed: int, *, is_quick: bool) -> Iterator[RequestGraph]:
    """The graphs of one turn."""
    if name in AT_ONCE:
        yield from AT_ONCE[name](encoder, seed=seed, quick=True).graphs
        return
    rng = random.Random(seed)
    for index in range(4 if is_quick else 24):
        order = rng.choice(_FORMS).format(
            name=rng.choice(_NAMES),
            item=rng.choice(_ITEMS),
            city=rng.choice(_CITIES),
            count=rng.randint(1, 200),
            price=rng.randint(4, 180) / 4,
        )
        if name == "copies":
            yield _chat("copy", f"Repeat the following: {order} {order[::-1]}", SamplingParams(max_tokens=150))
        elif name == "stories":
            text = (
                f"Tell a story about {rng.choice(_NAMES)} and a {rng.choice(('fox', 'bear', 'cat', 'dragon', 'crow'))}."
            )
            yield _chat("story", text, SamplingParams(max_tokens=150))
        else:
            temperature = 0.8 if name == "sampled records" else 0.0
            params = SamplingParams(max_tokens=120, temperature=temperature, seed=seed + index)
            text = f"Extract customer, item, quantity, price, city as JSON.\nText: {order}"
            yield _chat("record", text, params, _SCHEMA)


def _chat(name: str, text: str, params: SamplingParams, constraint: Constraint | None = None) -> RequestGraph:
    prompt = Text(0, None, (RoleStart("user"), text, RoleEnd(), RoleStart("assistant")))
    return RequestGraph((prompt, Generate(1, 0, name, params, constraint)))
