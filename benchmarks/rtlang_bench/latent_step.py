"""Compares steps of a model with latent attention over compressed pages with the same over multiplied-out keys and values, on a CPU.

python -m rtlang_bench.latent_step                       # layers of the shape of DeepSeek-V2-Lite, random weights in bfloat16

Both decoders have the same weights and take turns in one process; the least processor time of several repeats counts, and is printed per
layer. The contexts of the rows are random numbers in the pages. A layer has the feed-forward part of the first layer of that model, which
is dense and reads as many weights as the experts that a token takes in the others; the vocabulary is small.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.decoders import transformers_decoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import model_directory

SHAPE: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 32_768,
}
PAGE_SIZE = 16


def runner_of(directory: Path, num_pages: int, *, is_latent: bool, num_threads: int = 1) -> HostRunner:
    """Load the model with pages that hold latents, or with multiplied-out keys and values; random contexts are in the pages."""
    config = RuntimeConfig(
        model=str(directory),
        weights="dummy",
        dtype="bfloat16",
        decoder="transformers",
        page_size=PAGE_SIZE,
        num_pages=num_pages,
        num_threads=num_threads,
    )
    runner = HostRunner(config)
    with ExitStack() as stack:
        if not is_latent:
            stack.enter_context(patch.object(transformers_decoder, "absorb_projections", lambda model: 0))
        runner.load()
    for pool in (*runner.kv.k, *(() if is_latent else runner.kv.v)):
        pool.normal_()
    return runner


def step_of(num_rows: int, num_new: int, context: int) -> Step:
    """Rows of `num_new` tokens each, the last ones of `context`, each on pages of its own."""
    per_row = -(-context // PAGE_SIZE)
    tokens = tuple(index % SHAPE["vocab_size"] for index in range(num_new))
    rows = (
        Row(row, tokens, context - num_new, tuple(range(row * per_row, (row + 1) * per_row)), 0, True, SamplingParams())
        for row in range(num_rows)
    )
    return Step(0, tuple(rows))


def best_seconds(runners: Sequence[HostRunner], step: Step, repeats: int) -> list[float]:
    """Least processor time of a step on each runner, in turns."""

    best = [float("inf")] * len(runners)
    for number in range(repeats + 1):  # the first one compiles
        for index, runner in enumerate(runners):
            start = time.process_time()
            runner.launch(step)
            spent = time.process_time() - start
            best[index] = min(best[index], spent) if number else best[index]
    return best


def options_of(
    arguments: Sequence[str] | None, name: str, doc: str | None, *, num_layers: int, context: int
) -> argparse.Namespace:
    """The options of a benchmark of steps, the module `name`; `num_layers` and `context` are defaults."""
    parser = argparse.ArgumentParser(prog=f"python -m rtlang_bench.{name}", description=(doc or "").split("\n")[0])
    parser.add_argument("--layers", type=int, default=num_layers)
    parser.add_argument("--context", type=int, default=context)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--prompt", type=int, nargs="*", default=[512], help="tokens of prompts; none: no prompts")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args(arguments)


def steps_of(options: argparse.Namespace) -> list[tuple[str, tuple[int, int, int]]]:
    """The steps of `options_of`: name, and the arguments of `step_of`."""
    steps = [(f"decode {rows} x {options.context}", (rows, 1, options.context)) for rows in options.rows]
    return steps + [(f"prefill {length}", (1, length, length)) for length in options.prompt]


def most_pages(steps: Sequence[tuple[str, tuple[int, int, int]]]) -> int:
    """Pages of the largest of these steps."""
    return max(rows * -(-context // PAGE_SIZE) for _, (rows, _, context) in steps)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each kind of step."""
    options = options_of(arguments, "latent_step", __doc__, num_layers=3, context=4096)
    steps = steps_of(options)
    num_pages = most_pages(steps)
    with TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        shape = SHAPE | {"num_hidden_layers": options.layers, "first_k_dense_replace": options.layers}
        write_config(Path(scratch), model_directory(EMBEDDED_MODEL), "deepseek_v2", shape)
        runners = [
            runner_of(Path(scratch), num_pages, is_latent=each, num_threads=options.threads) for each in (True, False)
        ]
    sizes = [runner.kv.page_bytes // PAGE_SIZE // options.layers for runner in runners]
    print(f"bytes of KV per token and layer: {sizes[0]}, multiplied out {sizes[1]}, {sizes[1] / sizes[0]:.1f}x")
    for name, sizes_of_step in steps:
        ours, plain = best_seconds(runners, step_of(*sizes_of_step), options.repeats)
        each = [f"{seconds * 1e3 / options.layers:.2f} ms" for seconds in (ours, plain)]
        print(f"{name}: {each[0]} a layer, multiplied out {each[1]}, {plain / ours:.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
