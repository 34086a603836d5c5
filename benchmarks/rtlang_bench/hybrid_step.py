"""Compares steps of a hybrid model with gated delta layers with steps of a dense model with as many weights, on a CPU.

python -m rtlang_bench.hybrid_step                       # the layers of Qwen3.5-0.8B, random weights in bfloat16

Both models run on the native decoder and take turns in one process; the least processor time of several repeats counts. The dense model is
a Qwen3 with as many layers of the same width, whose feed-forward parts are as wide as it takes. The vocabulary is small.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.step import RowStates, Step
from rtlang.model.decoders.native_decoder import native_bytes
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import model_directory
from rtlang.model.loading.model_config import ModelConfig
from rtlang_bench.latent_step import PAGE_SIZE, best_seconds, most_pages, options_of, step_of, steps_of

SHAPE: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 32_768,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
_STEP = 32  # the width of the dense feed-forward part is a multiple


def write_models(folder: Path, num_layers: int) -> tuple[Path, Path]:
    """Write config.json of the hybrid model, and of a dense one with as many weights, into two new directories."""
    hybrid, dense = folder / "hybrid", folder / "dense"
    fields = SHAPE | {"num_hidden_layers": num_layers}
    for path in (hybrid, dense):
        path.mkdir()
    write_config(hybrid, model_directory(EMBEDDED_MODEL), "qwen3_5_text", fields)
    wanted = native_bytes(ModelConfig.from_pretrained(hybrid), torch.bfloat16)
    plain = {name: value for name, value in fields.items() if not name.startswith("linear_")}
    write_config(dense, model_directory(EMBEDDED_MODEL), "qwen3", plain | {"intermediate_size": _STEP})
    least = native_bytes(ModelConfig.from_pretrained(dense), torch.bfloat16)
    of_step = num_layers * 3 * SHAPE["hidden_size"] * _STEP * torch.bfloat16.itemsize
    inner = _STEP * (1 + round((wanted - least) / of_step))
    write_config(dense, model_directory(EMBEDDED_MODEL), "qwen3", plain | {"intermediate_size": inner})
    return hybrid, dense


def runner_of(directory: Path, num_pages: int, num_threads: int) -> HostRunner:
    """Load a model of random weights."""
    config = RuntimeConfig(
        model=str(directory),
        weights="dummy",
        dtype="bfloat16",
        decoder="native",
        page_size=PAGE_SIZE,
        num_pages=num_pages,
        num_threads=num_threads,
    )
    runner = HostRunner(config)
    runner.load()
    return runner


def with_states(step: Step) -> Step:
    """A step each of whose rows has a state of its own, as rows of a hybrid model need; a dense one ignores it."""
    rows = (
        row._replace(states=RowStates(index if row.num_computed_tokens else None, ((len(row.token_ids), index),)))
        for index, row in enumerate(step.rows)
    )
    return replace(step, rows=tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a line for each kind of step."""
    options = options_of(arguments, "hybrid_step", __doc__, num_layers=24, context=256)
    steps = steps_of(options)
    num_pages = most_pages(steps)
    with TemporaryDirectory(prefix="rtlang-bench-") as scratch:
        models = write_models(Path(scratch), options.layers)
        runners = [runner_of(path, num_pages, options.threads) for path in models]
    for name, sizes in steps:
        hybrid, dense = best_seconds(runners, with_states(step_of(*sizes)), options.repeats)
        shown = f"{hybrid * 1e3:.1f} ms, dense {dense * 1e3:.1f} ms"
        print(f"{name}: {shown}, {hybrid / dense:.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
