"""Measures layers of experts on a CPU: one call for all experts, against the loop of transformers and a dense layer of as many weights.

python -m rtlang_bench.experts --threads 1

Weights are random, in the shape of a small Qwen3-MoE. The dense layer has the weights that the experts of one token have: what is read at
least. If each chosen expert is read once, 8 rows of the same experts take about as long as one row, as they do in the dense layer. Times
are processor time with one thread, else wall time; the best of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn

from rtlang.bench.checkpoint import write_config
from rtlang.console.one_line_errors import one_line_errors
from rtlang.console.source import CommandError
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.batch import Batch
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.layers.attention import PagedKV, StepAttention
from rtlang.model.layers.linear import Linear
from rtlang.model.layers.packed_experts import pack_experts
from rtlang.model.loader import load_model, model_directory
from rtlang_bench.command import command, progress
from rtlang_bench.figure import Figure

SHAPE: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 1_024,
    "intermediate_size": 3_072,
    "moe_intermediate_size": 512,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "norm_topk_prob": True,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 4_096,
    "initializer_range": 0.05,
}
CASES = {"1 row": (1, False), "8 rows, same experts": (8, True), "8 rows": (8, False), "512 rows": (512, False)}
"""Rows of a call, and whether all of them choose the experts of the first."""
MOST_OF_DENSE, MOST_OF_ONE_ROW = 1.5, 2.0
"""Bounds: the time of one row in that of the dense layer, and of 8 rows of the same experts in that of one row."""
_CONTEXT, _PAGE_SIZE = 64, 16  # tokens before a decoding row, of a page
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Milliseconds of one layer in a case; `num_read` experts are chosen."""

    case: str
    num_read: int
    dense: float
    library: float
    packed: float

    def __str__(self) -> str:
        return (
            f"{self.case:22} {self.num_read:3} experts  dense {self.dense:7.2f} ms  transformers {self.library:7.2f} ms  "
            f"one call {self.packed:7.2f} ms  {self.library / self.packed:5.2f}x"
        )


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Milliseconds of a step of the whole model on both decoders."""

    case: str
    native: float
    transformers: float

    def __str__(self) -> str:
        ratio = self.transformers / self.native
        return f"{self.case:22} native {self.native:7.2f} ms  transformers decoder {self.transformers:7.2f} ms  {ratio:5.2f}x"


def best_ms(function: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The shortest time of some calls, after one that is not counted."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    function()
    times = []
    for _ in range(repeats):
        begun = clock()
        function()
        times.append(clock() - begun)
    return 1e3 * min(times)


def stock_layers(shape: dict[str, Any], num_layers: int, dtype: torch.dtype) -> list[Any]:
    """Modules of experts of the library with random weights."""
    from transformers import AutoConfig
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeExperts

    config = AutoConfig.for_model("qwen3_moe", **shape)
    config._experts_implementation = "grouped_mm"
    made = []
    for _ in range(num_layers):
        layer: Any = Qwen3MoeExperts(config).to(dtype).requires_grad_(False)
        for parameter in layer.parameters():
            parameter.uniform_(-0.05, 0.05)
        made.append(layer)
    return made


def routed(case: str, shape: dict[str, Any], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, experts and weights of the rows of a case."""
    (num_rows, is_same), slots = CASES[case], shape["num_experts_per_tok"]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_rows, shape["hidden_size"], generator=generator).to(dtype)
    rows = [torch.randperm(shape["num_experts"], generator=generator)[:slots] for _ in range(num_rows)]
    expert_ids = torch.stack(rows[:1] * num_rows if is_same else rows)
    return x, expert_ids, torch.full(expert_ids.shape, 1 / slots, dtype=dtype)


def measure_layers(
    shape: dict[str, Any], dtype: torch.dtype, tell: Callable[[str], None], cases: Sequence[str] = tuple(CASES)
) -> list[LayerTimes]:
    """Time layers of experts, more than the caches hold."""
    num_layers, hidden = shape["num_hidden_layers"], shape["hidden_size"]
    width = 3 * shape["moe_intermediate_size"] * shape["num_experts_per_tok"]
    tell("making layers")
    dense = [Linear(torch.empty(width, hidden, dtype=dtype).uniform_(-0.05, 0.05)) for _ in range(num_layers)]
    model = nn.ModuleList(stock_layers(shape, num_layers, dtype))
    inputs = {case: routed(case, shape, dtype) for case in cases}

    def per_layer(layers: Iterable[Any], *arguments: Tensor) -> float:
        own = list(layers)
        return best_ms(lambda: [layer(*arguments) for layer in own]) / len(own)

    found: dict[str, tuple[float, float]] = {}
    with torch.inference_mode():
        for case, arguments in inputs.items():
            tell(f"dense and transformers, {case}")
            found[case] = per_layer(dense, arguments[0]), per_layer(model, *arguments)
        tell("packing")
        pack_experts(model)
        times = []
        for case, arguments in inputs.items():
            tell(f"one call, {case}")
            times.append(
                LayerTimes(case, len(set(arguments[1].flatten().tolist())), *found[case], per_layer(model, *arguments))
            )
    return times


def step_of(num_rows: int, num_tokens: int, vocab_size: int) -> Batch:
    """A step of rows with `num_tokens` tokens each: prompts, or else one token after a context."""
    rows, per_row = [], -(-max(_CONTEXT + 1, num_tokens) // _PAGE_SIZE)
    generator = torch.Generator().manual_seed(0)
    for row in range(num_rows):
        tokens = torch.randint(0, vocab_size, (num_tokens,), generator=generator).tolist()
        pages = tuple(range(row * per_row, (row + 1) * per_row))
        rows.append(Row(row, tokens, _CONTEXT if num_tokens == 1 else 0, pages, 0, True, SamplingParams()))
    return Batch.from_step(Step(0, tuple(rows)), _PAGE_SIZE)


def step_ms(decoder: Decoder, kv: PagedKV, batch: Batch) -> float:
    """The time of a step with its logits."""
    with torch.inference_mode():
        return best_ms(lambda: decoder.project(decoder.forward(StepAttention(batch, kv))))


def measure_steps(shape: dict[str, Any], dtype: torch.dtype, tell: Callable[[str], None]) -> list[StepTimes]:
    """Time steps of the whole model on the native and the transformers decoder."""
    name = str(dtype).removeprefix("torch.")
    cases = {"decode 1 row": (1, 1), "decode 8 rows": (8, 1), "prefill 512": (1, 512)}
    found: dict[str, list[float]] = {case: [] for case in cases}
    with TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        directory = Path(scratch, "model")
        write_config(directory, model_directory(EMBEDDED_MODEL), "qwen3_moe", shape)
        config = RuntimeConfig(model=str(directory), weights="dummy", dtype=name, num_threads=torch.get_num_threads())
        for decoder_name in ("native", "transformers"):
            tell(f"loading on the {decoder_name} decoder")
            decoder, *_ = load_model(replace(config, decoder=decoder_name))
            kv = PagedKV(decoder.geometries, 8 * 512 // _PAGE_SIZE, _PAGE_SIZE, dtype, torch.device("cpu"))
            for case, (num_rows, num_tokens) in cases.items():
                tell(f"{decoder_name}, {case}")
                found[case].append(step_ms(decoder, kv, step_of(num_rows, num_tokens, shape["vocab_size"])))
            del decoder, kv
    return [StepTimes(case, *times) for case, times in found.items()]


def figures(times: Sequence[LayerTimes]) -> list[Figure]:
    """What the times of layers have to keep."""
    by_case = {each.case: each for each in times}
    one, same = by_case["1 row"], by_case["8 rows, same experts"]
    return [
        Figure("one row, in times of the dense layer", one.packed / one.dense, "<=", MOST_OF_DENSE, "x"),
        Figure(
            "8 rows of the same experts, in times of one row",
            same.packed / one.packed,
            "<=",
            MOST_OF_ONE_ROW,
            "x",
            f"the dense layer: {same.dense / one.dense:.2f} x",
        ),
    ]


def bench_experts(
    dtype: Annotated[str, typer.Option(help="bfloat16 or float32.")] = "bfloat16",
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch and of the kernels.")] = 1,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the model.")] = 12,
    steps: Annotated[bool, typer.Option(help="Measure steps of the whole model, too.")] = True,
) -> None:
    """Measure layers of experts, and steps of a model with them on both decoders."""
    torch.set_num_threads(threads)
    kind, shape = {"bfloat16": torch.bfloat16, "float32": torch.float32}[dtype], SHAPE | {"num_hidden_layers": layers}
    experts = f"{shape['num_experts']} experts of 3 x {shape['hidden_size']} x {shape['moe_intermediate_size']}"
    with one_line_errors():
        with progress() as tell:
            times = measure_layers(shape, kind, tell)
            both = measure_steps(shape, kind, tell) if steps else []
        kept = figures(times)
        typer.echo(
            f"{experts}, {shape['num_experts_per_tok']} for a token, {dtype}, {threads} threads, {layers} layers"
        )
        for line in (*times, *both, *kept):
            typer.echo(str(line))
        if not all(each.is_met for each in kept):
            raise CommandError("a bound is missed")


app = command(bench_experts)

if __name__ == "__main__":
    app()
