"""Compares the time of a step on several ranks with that of one process, on the CPU, for a Llama with 100 million parameters.

python -m rtlang.bench.comparison.ranks [--ranks 2] [--decoder native] [--rows 8]

Both models are loaded at the same time with one thread per process; blocks of steps alternate. A step computes one token of each row. The
CPU time is that of rank 0 alone, which waits for others without computing, and so tells more than the clock on a busy machine.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from rtlang.bench.checkpoint import write_config
from rtlang.bench.machine import this_machine
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, Step
from rtlang.model.host_runner import HostRunner
from rtlang.model.loading.loader import model_directory

SHAPE: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 768,
    "intermediate_size": 2_048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2_048,
    "tie_word_embeddings": True,
}
PAGE_SIZE, NUM_PROMPT_TOKENS = 16, 64
NUM_BLOCKS, STEPS_PER_BLOCK = 7, 8


@dataclass(slots=True)
class Side:
    """A loaded runner and its blocks of steps: milliseconds per step by the clock, and of CPU time."""

    runner: HostRunner
    num_rows: int
    length: int = NUM_PROMPT_TOKENS
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def step(self, num_tokens: int, start: int) -> None:
        """Compute tokens [start, start + num_tokens) of every row and sample one more."""
        pages_per_row = -(-(NUM_PROMPT_TOKENS + NUM_BLOCKS * STEPS_PER_BLOCK) // PAGE_SIZE)
        rows = tuple(
            Row(
                index,
                tuple((7 * index + place) % SHAPE["vocab_size"] for place in range(num_tokens)),
                start,
                tuple(range(index * pages_per_row, (index + 1) * pages_per_row)),
                0,
                True,
                SamplingParams(),
            )
            for index in range(self.num_rows)
        )
        flight = self.runner.launch(Step(start, rows))
        self.runner.sample(flight, rows)
        self.runner.collect(flight)

    def block(self) -> None:
        """Measure a block of steps."""
        wall, cpu = perf_counter(), process_time()
        for _ in range(STEPS_PER_BLOCK):
            self.step(1, self.length)
            self.length += 1
        self.wall_ms.append(1e3 * (perf_counter() - wall) / STEPS_PER_BLOCK)
        self.cpu_ms.append(1e3 * (process_time() - cpu) / STEPS_PER_BLOCK)


def compare(num_ranks: int, decoder: str, num_rows: int, dtype: str) -> tuple[Side, Side]:
    """Measure one process and `num_ranks` ranks; in this order."""
    with tempfile.TemporaryDirectory() as directory:
        write_config(Path(directory), model_directory(EMBEDDED_MODEL), "llama", SHAPE)
        sides = []
        try:
            for ranks in (1, num_ranks):
                config = RuntimeConfig(
                    model=directory,
                    weights="dummy",
                    dtype=dtype,
                    decoder=decoder,
                    device="cpu",
                    num_threads=1,
                    num_pages=num_rows * 16,
                    page_size=PAGE_SIZE,
                    tensor_parallel=ranks,
                )
                sides.append(Side(HostRunner(config), num_rows))
                sides[-1].runner.load()
            for side in sides:
                side.step(NUM_PROMPT_TOKENS, 0)
            for _ in range(NUM_BLOCKS):
                for side in sides:
                    side.block()
        finally:
            for side in sides:
                side.runner.close()
    return sides[0], sides[1]


def main() -> None:
    """Print both sides and their ratios: medians of blocks, with the fastest and the slowest block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--decoder", choices=("native", "transformers"), default="native")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    options = parser.parse_args()
    one, many = compare(options.ranks, options.decoder, options.rows, options.dtype)
    print(this_machine())
    print(f"{options.decoder}, {options.dtype}, {options.rows} rows, one thread per process; milliseconds per step")
    for name, first, second in (("clock", one.wall_ms, many.wall_ms), ("CPU of rank 0", one.cpu_ms, many.cpu_ms)):
        shown = (f"{median(part):.1f} ({min(part):.1f} to {max(part):.1f})" for part in (first, second))
        ratio = median(a / b for a, b in zip(first, second, strict=True))
        print(f"{name}: one process {next(shown)}, {options.ranks} ranks {next(shown)}, {ratio:.2f}x")


if __name__ == "__main__":
    main()
