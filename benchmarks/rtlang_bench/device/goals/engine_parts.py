"""The command `python -m rtlang_bench.device.goals.engine_parts PART`: one part of the runtime's figures on a GPU.

Models are random and have the shapes of published ones. With `--device interpreter --tiny` this shows that all of it runs.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer

from rtlang.bench.checkpoint import SHAPE
from rtlang.bench.measure import run_on_target
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import Constraint, ConstraintKind
from rtlang.contract.request_graph import Generate, RequestGraph
from rtlang.model.gpu.accelerator import accelerator_for
from rtlang.runtime.runtime import Runtime
from rtlang_bench.command import command
from rtlang_bench.device import run
from rtlang_bench.device.goals import profile
from rtlang_bench.device.live import live_graphs
from rtlang_bench.device.run import COUNTED, FLOAT8, INT4, RECORDS, SHAPE_8B, Case, Plan
from rtlang_kernels_bench import device_run
from rtlang_kernels_bench.output import Output, watchdog

ARRIVAL_SHARE = 0.7
"""Rate of requests that arrive one by one, relative to the measured rate of requests that arrive at once."""
_PERSON = {"name": {"type": "string"}, "age": {"type": "integer"}}


def _people(**item: Any) -> Constraint:
    """Arrays of objects."""
    schema = {"type": "array", "minItems": 1, "items": {"type": "object", "properties": _PERSON, **item}}
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))


CONSTRAINTS = {
    "closed schema": _people(required=["name", "age"], additionalProperties=False),
    "open schema": _people(required=["name"]),
    "records": RECORDS,
    "masks of the host": COUNTED,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Models and loads.

    Attributes:
        large, small: shapes of models.
        rows: of decoding cases.
        prompt_tokens: of decoding cases.
        crowd: rows of constrained loads, their requests, and the most tokens of one.
        tokens: of the short and the long run of a case.
        live_rows: limits of rows of live loads.
        num_requests: of a live load.
        live_prompts, live_outputs: fewest and most tokens of requests of a live load.
        live_len, live_step_tokens: `max_model_len` and `max_step_tokens` of a live load.
    """

    large: Mapping[str, Any]
    small: Mapping[str, Any]
    rows: tuple[int, ...]
    prompt_tokens: int
    crowd: tuple[int, int, int]
    tokens: tuple[int, int]
    repeats: int
    live_rows: tuple[int, ...]
    num_requests: int
    live_prompts: tuple[int, int]
    live_outputs: tuple[int, int]
    live_len: int
    live_step_tokens: int


SHAPE_1B = SHAPE_8B | {
    "hidden_size": 2_048,
    "intermediate_size": 8_192,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "tie_word_embeddings": True,
}
_TINY_SHAPE = SHAPE | {
    "vocab_size": 1_600,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 256,
}
FULL = Sizes(
    SHAPE_8B, SHAPE_1B, (1, 64), 1024, (128, 384, 512), (16, 80), 3, (256, 64), 512, (64, 512), (16, 256), 1024, 8192
)
TINY = Sizes(_TINY_SHAPE, _TINY_SHAPE, (1, 2), 20, (1, 1, 12), (1, 3), 1, (2,), 3, (8, 20), (2, 4), 64, 32)


@dataclass(frozen=True, slots=True)
class Context:
    """Settings and destinations of a part.

    Attributes:
        bytes_per_s: copy rate of the device, for floors.
    """

    config: RuntimeConfig
    sizes: Sizes
    output: Output
    is_late: Callable[[], bool]
    bytes_per_s: float

    def decode(self, variant: str, cases: tuple[Case, ...], shape: Mapping[str, Any], **settings: Any) -> None:
        """Measure steps of a variant of a model, each case as a figure."""
        linear_inputs = settings.pop("linear_inputs", self.config.linear_inputs)
        short, long = self.sizes.tokens
        plan = Plan(shape, cases, short, long, self.sizes.repeats, linear_inputs)
        config = replace(self.config, **settings)
        for line in run.measure(config, plan, self.bytes_per_s, self.output, is_late=self.is_late):
            self.output.write(f"{variant}: {run.text_of(line)}")
            self.output.figure({"kind": "decoding", "variant": variant} | asdict(line))
        accelerator_for(self.config.device).release()

    def decode_large(self, variant: str, quantization: Mapping[str, Any] | None = None, **settings: Any) -> None:
        """Measure steps of the large model, its weights in a format."""
        cases = tuple(Case(f"batch {rows}", rows, self.sizes.prompt_tokens) for rows in self.sizes.rows)
        shape = dict(self.sizes.large) | ({} if quantization is None else {"quantization_config": quantization})
        self.decode(variant, cases, shape, **settings)


def steps(context: Context) -> None:
    """Steps with weights in bfloat16 and in float8, the latter multiplied with states in float8 and in bfloat16."""
    context.decode_large("floats")
    context.decode_large("float8 inputs", FLOAT8, linear_inputs="float8")
    context.decode_large("float8", FLOAT8)


def constrained(context: Context) -> None:
    """Constrained requests, each load beside free requests with the same prompts and as many tokens."""
    num_rows, num_requests, max_tokens = context.sizes.crowd
    with _runtime(context, context.sizes.large, num_rows) as runtime:
        for name, constraint in CONSTRAINTS.items():
            if context.is_late():
                return
            with context.output.part(f"constrained, {name}"):
                graphs = live_graphs(
                    runtime.tokenizer, num_requests, context.sizes.live_prompts, (max_tokens,) * 2, constraint
                )
                run_on_target(runtime, graphs[:num_rows])  # compiles the constraint
                ratios, rates = [], []
                for _ in range(context.sizes.repeats):
                    runtime.clear_cache()
                    bound = run_on_target(runtime, graphs)
                    runtime.clear_cache()
                    free = run_on_target(
                        runtime,
                        [_free(graph, len(bound.outputs[index, 1])) for index, graph in enumerate(graphs)],
                    )
                    rates.append(bound.output_tokens_per_s)
                    ratios.append(bound.output_tokens_per_s / free.output_tokens_per_s)
                ratio, rate = statistics.median(ratios), statistics.median(rates)
                spread = max(ratios) - min(ratios)
                context.output.write(f"{name}: {rate:.0f} tokens/s, {ratio:.3f} of free requests, spread {spread:.3f}")
                context.output.figure(
                    {"kind": "constrained", "name": name, "tokens_per_s": rate, "ratio": ratio, "spread": spread}
                )


def _free(graph: RequestGraph, num_tokens: int) -> RequestGraph:
    """A request without its constraint and with this number of tokens."""
    text, generate = graph.nodes
    assert isinstance(generate, Generate)
    params = replace(generate.params, max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True)
    return RequestGraph((text, replace(generate, params=params, constraint=None)))


def variants(context: Context) -> None:
    """Steps in a fixed order of sums, with KV in float8, and with weights in int4."""
    context.decode_large("fixed order", deterministic=True)
    context.decode_large("KV in float8", kv_dtype="float8")
    context.decode_large("int4", INT4)


def live_large(context: Context) -> None:
    """Live loads of the large model."""
    for rows in context.sizes.live_rows:
        if not context.is_late():
            _live(context, "large", context.sizes.large, rows)


def live_small(context: Context) -> None:
    """A live load of the small model, and its rate when all rows decode in replayed steps."""
    rows, sizes = context.sizes.live_rows[0], context.sizes
    _live(context, "small", sizes.small, rows)
    tokens = (sum(sizes.live_prompts) + sum(sizes.live_outputs) // 2) // 2
    context.decode("small", (Case("batch of the live load", rows, tokens),), sizes.small)


def texts(context: Context) -> None:
    """Texts of a small model in float32, compared with the CPU's.

    Raises:
        ArithmeticError: they differ.
    """
    is_right = run.check(context.config, context.output.write)
    context.output.figure({"kind": "texts", "is_right": is_right})
    if not is_right:
        raise ArithmeticError(f"fewer than {run.MIN_EQUAL:.0%} of the outputs match the CPU's")


def profiles(context: Context) -> None:
    """Kernels of decoding steps, and the time between them."""
    with _runtime(context, context.sizes.large, max(context.sizes.rows)) as runtime:
        for rows in context.sizes.rows:
            graphs = live_graphs(runtime.tokenizer, rows, context.sizes.live_prompts, (context.sizes.tokens[1],) * 2)
            run_on_target(runtime, graphs)
            found = profile.profiled(lambda graphs=graphs: run_on_target(runtime, graphs))  # type: ignore[misc]
            context.output.write(f"{rows} rows: {found}")
            context.output.figure({"kind": "profile", "rows": rows} | asdict(found))


PARTS = {
    "steps": steps,
    "constrained": constrained,
    "live-large": live_large,
    "live-small": live_small,
    "texts": texts,
    "variants": variants,
    "profile": profiles,
}


class _runtime:
    """A runtime for live loads of a random model, as a context manager."""

    def __init__(self, context: Context, shape: Mapping[str, Any], rows: int) -> None:
        self._folder = TemporaryDirectory(prefix="rtlang-bench-")
        self._config = replace(
            context.config,
            model=str(run.write_shape(Path(self._folder.name), shape)),
            weights="dummy",
            max_rows=rows,
            max_model_len=context.sizes.live_len,
            max_step_tokens=context.sizes.live_step_tokens,
        )

    def __enter__(self) -> Runtime:
        self._runtime = Runtime(config=self._config)
        return self._runtime.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._runtime.__exit__(*error)
        del self._runtime
        self._folder.cleanup()


def _live(context: Context, model: str, shape: Mapping[str, Any], rows: int) -> None:
    """Measure requests that arrive at once, then requests that arrive at ARRIVAL_SHARE of the rate at which those were served."""
    sizes = context.sizes
    with _runtime(context, shape, rows) as runtime:
        graphs = live_graphs(runtime.tokenizer, sizes.num_requests, sizes.live_prompts, sizes.live_outputs)
        run_on_target(runtime, graphs[: max(1, rows // 2)])
        arrivals: tuple[float, ...] = ()
        for name in ("at once", "one by one"):
            runtime.clear_cache()
            before = runtime.stats()
            found = run_on_target(runtime, graphs, arrivals_s=arrivals)
            after = runtime.stats()
            replayed, eager = (after[key] - before[key] for key in ("num_steps_replayed", "num_steps_eager"))
            first_s = statistics.median(found.first_token_s)
            context.output.write(
                f"live {model}, {rows} rows, {name}: {found.output_tokens_per_s:.0f} tokens/s, first token after {first_s:.3f} s, "
                f"{replayed} steps replayed, {eager} not"
            )
            figure = {"tokens_per_s": found.output_tokens_per_s, "first_token_s": first_s, "total_s": found.total_s}
            steps = {"num_replayed": replayed, "num_eager": eager}
            context.output.figure({"kind": "live", "model": model, "rows": rows, "arrivals": name, **figure, **steps})
            gaps = np.random.default_rng(0).exponential(found.total_s / (ARRIVAL_SHARE * len(graphs)), len(graphs))
            arrivals = tuple(np.cumsum(gaps).tolist())
    accelerator_for(context.config.device).release()


def measure_part(
    part: Annotated[str, typer.Argument(help=f"One of {', '.join(PARTS)}.", metavar="PART")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to this file, one JSON object per line.")
    ] = None,
    device: Annotated[str, typer.Option(help="cuda or interpreter.")] = "cuda",
    tiny: Annotated[bool, typer.Option(help="Tiny models, which show that all of it runs.")] = False,
    budget_s: Annotated[float, typer.Option(min=1, help="Start no new measurement after this many seconds.")] = 100.0,
) -> None:
    """Measure one part of the figures of a runtime on a GPU."""
    started = time.monotonic()
    with one_line_errors():
        if part not in PARTS:
            raise CommandError(f"{part}: expected {', '.join(PARTS)}")
        if device not in ("cuda", "interpreter"):
            raise CommandError(f"--device {device}: expected cuda or interpreter")
        if not math.isfinite(budget_s):
            raise CommandError(f"--budget-s {budget_s}: expected a finite number")
        config = RuntimeConfig(device=device, dtype="bfloat16", num_pages=64 if tiny else None)
        accelerator = accelerator_for(device)
        with Output(None, json_file) as output, watchdog(output, budget_s), output.part(part):
            rate = 1e12
            if device == "cuda":
                ceilings = device_run.measure_ceilings(accelerator.device, device_run.measure_on_device)
                output.write(f"{device_run.environment(accelerator.device)}; {ceilings}")
                rate = ceilings.bytes_per_s
                accelerator.release()
            sizes = TINY if tiny else FULL
            PARTS[part](Context(config, sizes, output, lambda: time.monotonic() - started > budget_s, rate))
        if output.num_failed:
            raise CommandError(f"{output.num_failed} measurements failed, listed above")


app = command(measure_part)

if __name__ == "__main__":
    app()
