"""A draft head on a device: its steps are replayed from graphs, as those of the model are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row, Step
from rtlang.model.draft_heads.draft_head import DraftHead
from rtlang.model.draft_heads.head_runner import HeadRunner
from rtlang.model.gpu.accelerator import Accelerator
from rtlang.model.gpu.device_batch import on_device
from rtlang.model.gpu.device_graphs import GraphSizes, StepGraphs, capture_steps
from rtlang.model.gpu.device_sampler import launch_sampling, uploaded_masks
from rtlang.model.gpu.sampler_rows import SamplerRows
from rtlang.model.layers.attention import HiddenTap, StepAttention
from rtlang.model.sampler import Sample


class HeadDecoder:
    """A head as the `Decoder` of its graphs, which takes states from a fixed address.

    Attributes:
        states: [num_tokens, num_states] of the largest graph.
    """

    state_shapes = ()
    is_row_invariant = False

    def __init__(self, head: DraftHead, num_tokens: int, device: torch.device, dtype: torch.dtype) -> None:
        self._head, self.dtype, self.geometries = head, dtype, head.geometries
        self.windows = ((None, None),) * len(head.geometries)
        self.states = torch.zeros((num_tokens, head.num_states), dtype=dtype, device=device)

    def reserve(self, longest: int) -> None:
        """See `Decoder`."""
        self._head.reserve(longest)

    def forward(self, attention: StepAttention) -> Tensor:
        """See `Decoder`; predicts states."""
        batch = attention.batch
        found = self._head.forward(attention, self.states[: batch.num_tokens])
        return found.index_select(0, batch.logit_indices)

    def project(self, states: Tensor) -> Tensor:
        """See `Decoder`."""
        return self._head.project(states)


class DeviceHeadRunner(HeadRunner):
    """The `Runner` of a draft head on a device, and the `StateSink` of the model's graphs. Its own graphs are captured by `capture`.

    Args:
        accelerator: the device.
    """

    def __init__(self, *args: Any, accelerator: Accelerator, **options: Any) -> None:
        super().__init__(*args, **options)
        self._accelerator = accelerator
        self._graphs = StepGraphs({}, self.kv.page_size)
        self._decoder: HeadDecoder | None = None
        self._taken: Tensor | None = None  # from the last step of a graph of the model, at a fixed address
        self._sampler_rows = SamplerRows()
        self._sampled = torch.zeros(1, dtype=torch.int64, device=self.kv.device)
        self._sampled_at: Mapping[int, int] = {}

    def capture(self, sampled: Tensor, sizes: GraphSizes) -> None:
        """Capture graphs of the head's steps; without any, kernels are launched one by one.

        Args:
            sampled: int64, the tokens that the model sampled last; its address does not change.
            sizes: those of the model's graphs.
        """
        self._sampled = sampled
        device, dtype = self.kv.device, self.kv.dtype
        self._decoder = HeadDecoder(self.head, sizes.num_tokens, device, dtype)
        self._graphs = capture_steps(self._decoder, self.kv, self._accelerator, sampled, sizes, self.max_model_len)
        self._taken = torch.zeros_like(self._decoder.states)

    def write(self, tap: HiddenTap) -> None:
        """See `StateSink`; the states are those that `follow` takes."""
        assert self._taken is not None
        found = self.head.combine(tap.states)
        self._taken[: len(found)].copy_(found)

    def follow_graph(self, step: Step, sampled_at: Mapping[int, int]) -> None:
        """As `follow`, after a graph of the model.

        Args:
            sampled_at: by request id, the place of its token among those sampled last.
        """
        assert self._taken is not None
        self._sampled_at = sampled_at
        self.follow(step, self._taken[: sum(len(row.token_ids) for row in step.rows)])

    def follow_eager(self, step: Step, tap: HiddenTap, sampled_at: Mapping[int, int]) -> None:
        """As `follow_graph`, after a step whose kernels were launched one by one."""
        self._sampled_at = sampled_at
        self.follow(step, self.head.combine(tap.states))

    def close(self) -> None:
        """See `Runner`; frees graphs and buffers."""
        super().close()
        self._graphs, self._decoder, self._taken = StepGraphs({}, self.kv.page_size), None, None

    def compute(self, step: Step, states: Tensor) -> Tensor:
        """See `HeadRunner`. Only enqueues work."""
        written = self._graphs.write(step, self._sampled_at)
        if written.graph is not None:
            assert self._decoder is not None
            self._decoder.states[: len(states)].copy_(states)
            return written.graph.replay().clone()
        assert written.batch is not None
        assert written.sources is not None
        there = on_device(written.batch, written.sources, self._sampled, self.kv.device)
        return self.head.forward(StepAttention(there, self.kv), states).index_select(0, there.logit_indices)

    def samples(self, logits: Tensor, rows: Sequence[Row], bitmask: NDArray[np.int32] | None) -> list[Sample]:
        """See `HeadRunner`; waits for the tokens, since the next draft follows them."""
        masks = uploaded_masks(logits.device, rows, bitmask)
        return launch_sampling(self._accelerator, logits, rows, masks, self._sampler_rows).wait()
