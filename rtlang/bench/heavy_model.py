"""A model with the texts of one checkpoint and the cost of a larger random one.

How much drafts save depends on how predictable texts are and on what a step costs. A small trained model has predictable texts, a random
one of a usual size the cost. Here every forward pass computes both, on the same pages and rows, and the results of the larger model are
dropped.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rtlang.bench.checkpoint import SHAPES, write_config
from rtlang.contract.config import EMBEDDED_MODEL, RuntimeConfig
from rtlang.model.decoders.native_decoder import Decoder
from rtlang.model.host_runner import HostRunner
from rtlang.model.layers.attention import StepAttention
from rtlang.model.loader import model_directory
from rtlang.model.runner import Runner
from rtlang.runtime.runtime import Runtime


def load_heavy(config: RuntimeConfig, shape: str, directory: Path) -> HostRunner:
    """Load a random model of a shape of `checkpoint.SHAPES`, whose weights are drawn in memory, with the pool of `config`.

    Args:
        directory: for its configuration and a copy of the tokenizer of the embedded model.
    """
    model_type, fields = SHAPES[shape]
    write_config(directory, model_directory(EMBEDDED_MODEL), model_type, fields)
    runner = HostRunner(replace(config, model=str(directory), weights="dummy", max_model_len=None))
    runner.load()
    return runner


class HeavyDecoder:
    """A decoder whose calls also compute another model."""

    def __init__(self, decoder: Decoder, heavy: HostRunner) -> None:
        self._decoder, self._heavy = decoder, heavy
        self._states: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    def forward(self, attention: StepAttention) -> Any:
        """See `Decoder`."""
        self._states = self._heavy.decoder.forward(StepAttention(attention.batch, self._heavy.kv))
        return self._decoder.forward(attention)

    def project(self, states: Any) -> Any:
        """See `Decoder`."""
        if self._states is not None:
            self._heavy.decoder.project(self._states[: len(states)])
        return self._decoder.project(states)


class HeavyRuntime(Runtime):
    """A runtime whose steps cost as much as with both models. `heavy` has as many pages, and may serve several runtimes in turns."""

    def __init__(self, config: RuntimeConfig, heavy: HostRunner) -> None:
        super().__init__(config=config)
        self._heavy = heavy

    def _new_runner(self) -> Runner:
        runner, heavy = super()._new_runner(), self._heavy
        load = runner.load

        def load_both() -> None:
            load()
            assert isinstance(runner, HostRunner)
            runner.decoder = HeavyDecoder(runner.decoder, heavy)

        runner.load = load_both  # type: ignore[method-assign]
        return runner
