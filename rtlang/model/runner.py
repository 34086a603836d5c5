"""The runner protocol: how the engine drives a model and its KV memory, on the host or on a device.

A step passes through three calls. `launch` starts the forward pass, `sample` starts sampling of its tokens, and `collect` returns the
results. A host runner computes in each call; a device runner only enqueues work in the first two, so the engine can launch the next step
before it collects the results of the previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.step import Row, SampledRow, Step, StepOutput
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars.machine.export import Walk


class PageMemory(Protocol):
    """The content of pages as bytes. It may be read and written from any thread while steps run, for pages that no step writes."""

    @property
    def page_format(self) -> str:
        """Determines how the bytes of a page are laid out."""

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in all layers."""

    @property
    def gives_back(self) -> bool:
        """Whether `release` gives memory back. If not, cached pages cost nothing, even if nobody uses them."""

    def release(self, runs: Sequence[tuple[int, int]]) -> None:
        """Give the memory of unused pages back to the system, as (first page, number of pages)."""

    def read_pages(self, page_ids: Sequence[int]) -> NDArray[np.uint8]:
        """The content of pages: uint8 [len(page_ids), page_bytes]."""

    def write_pages(self, pages: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """Write pages, as (page, its content from `read_pages`); each is taken from the iterable when it is needed.

        Returns when steps may read all of them.
        """

    def abandon_writes(self) -> None:
        """Drop the unfinished writes of other threads, since their pages belong to others now; their iterables have ended."""


class StateContent(Protocol):
    """The content of states as bytes. It may be read and written from any thread while steps run, for slots that no step writes."""

    @property
    def state_format(self) -> str:
        """Determines how the bytes of a state are laid out."""

    @property
    def state_bytes(self) -> int:
        """Bytes of one state in all layers."""

    def release_states(self, slots: Sequence[int]) -> None:
        """Give the memory of unused slots back to the system."""

    def read_states(self, slots: Sequence[int]) -> NDArray[np.uint8]:
        """The content of states: uint8 [len(slots), state_bytes]."""

    def write_states(self, states: Iterable[tuple[int, NDArray[np.uint8]]]) -> None:
        """Write states, as (slot, its content from `read_states`); see `PageMemory.write_pages`."""

    def abandon_writes(self) -> None:
        """See `PageMemory.abandon_writes`."""


class Runner(Protocol):
    """Owns a model and its KV pages. Used by one thread at a time; `load` comes first.

    Attributes (after `load`):
        model_config, tokenizer: the loaded model's.
        num_replayed, num_eager: steps replayed from a captured graph, and other device steps; 0 on the host.
    """

    model_config: ModelConfig
    tokenizer: Tokenizer
    num_replayed: int
    num_eager: int

    @property
    def is_pipelined(self) -> bool:
        """Whether a step should be launched before the results of the previous one are collected."""

    @property
    def is_row_invariant(self) -> bool:
        """Whether the tokens sampled for a row do not depend on the other rows and tokens of its step."""

    @property
    def num_pages(self) -> int:
        """Pages available to sequences."""

    @property
    def num_states(self) -> int:
        """State slots available to sequences and checkpoints; 0 for a model without recurrent layers, at least 2 for others."""

    @property
    def max_model_len(self) -> int:
        """Maximum sequence length in tokens."""

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """The settings with the limits of a step that the memory of a device decides; others stay."""

    @property
    def page_memory(self) -> PageMemory | None:
        """Access to the content of pages for the tiers below the pool; None if the runner has none."""

    @property
    def state_memory(self) -> StateContent | None:
        """The same for states; None also for a model without recurrent layers."""

    def load(self) -> None:
        """Load the model and allocate the KV pages.

        Raises:
            ModelLoadError, ConfigError: the model cannot be loaded with these settings.
        """

    def close(self) -> None:
        """Free the memory of a device. Idempotent."""

    def launch(self, step: Step) -> Any:
        """Start a step's page copies and forward pass; returns a handle for `sample` and `collect`.

        Raises:
            ValueError: the step is malformed (a bug of the caller); nothing was computed.
        """

    def sample(
        self, flight: Any, rows: Sequence[Row], bitmask: NDArray[np.int32] | None, walks: Mapping[int, Walk] = ...
    ) -> None:
        """Start sampling the tokens of a launched step.

        Args:
            rows: the rows of the step, with mask rows and history as known now.
            bitmask: int32 [M, ceil(vocab_size / 32)], indexed by `Row.mask_row` of rows without a walk; None if none of these has a mask.
            walks: by row, positions in automata for which `can_follow` returned True. The mask rows of these rows have no meaning.
        """

    def collect(self, flight: Any) -> StepOutput:
        """Wait for a sampled step and return its results."""

    def sample_again(self, flight: Any, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        """Sample rows of a collected step again that were lost.

        Args:
            indices: of rows that came back with `SampledRow.is_lost`.
            bitmask: int32 [len(indices), ceil(vocab_size / 32)], their masks.
        """

    def can_follow(self, walk: Walk) -> bool:
        """Whether the device can follow this walk and compute its masks from now on."""
