"""Measures steps of a decoder without an engine: decode steps of some rows, and the prefill of one prompt."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtlang.bench.checkpoint import write_config
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row, RowStates, Step
from rtlang.model.decoders.native_decoder import NativeDecoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.loader import model_directory

CONTEXT = 256  # tokens of each row of a decode step
PROMPT = 512
PAGE_SIZE = 16


@dataclass(frozen=True, slots=True)
class StepShape:
    """Rows of a step, and the new tokens and earlier tokens of each."""

    num_rows: int
    num_new: int
    num_computed: int

    def __str__(self) -> str:
        return f"prefill of {self.num_new}" if not self.num_computed else f"{self.num_rows} rows"


STEPS = (StepShape(1, 1, CONTEXT), StepShape(8, 1, CONTEXT), StepShape(1, PROMPT, 0))


class MeasuredDecoder:
    """A random model, whose weights are drawn in memory, and its pages.

    Args:
        directory: for its configuration; created.
        decoder: native, transformers or auto.
        num_threads: of torch.
    """

    def __init__(
        self, directory: Path, model_type: str, fields: Mapping[str, Any], decoder: str, num_threads: int
    ) -> None:
        write_config(directory, model_directory(EMBEDDED_MODEL), model_type, fields)
        largest = max(step.num_rows * -(-(step.num_computed + step.num_new) // PAGE_SIZE) for step in STEPS)
        self._runner = HostRunner(
            RuntimeConfig(
                model=str(directory),
                weights="dummy",
                decoder=decoder,
                dtype="bfloat16",
                page_size=PAGE_SIZE,
                num_pages=largest + 1,
                max_model_len=PROMPT + PAGE_SIZE,
                num_threads=num_threads,
            )
        )
        self._runner.load()

    @property
    def is_native(self) -> bool:
        """Whether the native decoder computes the model."""
        return isinstance(self._runner.decoder, NativeDecoder)

    def seconds(self, shape: StepShape) -> float:
        """Processor time of one step with its samples."""
        pages = iter(range(1, self._runner.kv.num_pages))
        rows = []
        for index in range(shape.num_rows):
            num_pages = -(-(shape.num_computed + shape.num_new) // PAGE_SIZE)
            page_ids = tuple(next(pages) for _ in range(num_pages))
            tokens = [7 + (index * 31 + place) % 1000 for place in range(shape.num_new)]
            states = None
            if self._runner.num_states:
                # The state before a decode step is that of the prefix: of the last step here, whose values do not change the cost.
                states = RowStates(index if shape.num_computed else None, ((shape.num_new, index),))
            row = Row(index, tokens, shape.num_computed, page_ids, 0, True, SamplingParams(), states=states)
            rows.append(row)
        step = Step(0, tuple(rows))
        start = time.process_time()
        flight = self._runner.launch(step)
        self._runner.sample(flight, step.rows, None)
        self._runner.collect(flight)
        return time.process_time() - start


def best_seconds(sides: Sequence[MeasuredDecoder], shape: StepShape, num_repeats: int) -> list[float]:
    """The least processor time of a step on each side, which take turns, so that both see the same neighbours."""
    found = [[side.seconds(shape) for side in sides] for _ in range(1 + num_repeats)]
    return [min(times) for times in zip(*found[1:], strict=True)]  # the first step compiles and grows buffers
