"""Runs a draft head along with the model: K and V of its layers after each step, and drafts between steps.

K and V of the head's layers lie in the pages of the model, as those of further layers do. So a prefix that requests share, that is copied,
or that comes back from a tier has them, too. The head is one position behind the model: the states of a token and the token that follows
give K and V in the slot of the former. Therefore a step of the head has the tokens of the model's step, each one slot earlier. Where the
states before the first token of a row are not known, because its prefix was found in the cache, the slot keeps what the sequence before
has written; a draft may be worse for it, and no text changes.

The pages that drafts need beyond those of a request are scratch pages after those of the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.step import Row, SampledRow, Step, StepOutput
from rtlang.model.batch import Batch
from rtlang.model.draft_heads.draft_head import DraftHead
from rtlang.model.layers.attention import HiddenTap, PagedKV, StepAttention
from rtlang.model.loading.model_config import ModelConfig
from rtlang.model.sampler import Sample, gather_samples, sample_tokens, sampled_rows
from rtlang.model.text.tokenizer import Tokenizer
from rtlang_grammars.machine.export import Walk
from rtlang_kernels.host.transfer import copy_to_device

NUM_SCRATCH_PAGES = 64
"""Pages for drafts of all rows of a step beyond their own."""
MAX_HELD = 4096
"""Most requests whose last states are held."""

_MOST = 1 << 40


@dataclass(frozen=True, slots=True)
class _HeldStates:
    """The states of the last tokens of a request: `count` rows of `states` from `start` on, of which the first is that of token `first`."""

    states: Tensor
    start: int
    first: int
    count: int = 1

    def at(self, position: int) -> int | None:
        """The row of a token, if its states are here."""
        index = position - self.first
        return self.start + index if 0 <= index < self.count else None


class _Gathered:
    """Chooses rows of tensors of states, and copies them at once."""

    def __init__(self, first: Tensor) -> None:
        self._sources, self._starts = [first], {id(first): 0}
        self._num_rows = len(first)
        self.rows: list[int] = []

    def add(self, held: Tensor, row: int) -> None:
        """Choose a row of a tensor, which may be another one than before."""
        start = self._starts.get(id(held))
        if start is None:
            start = self._starts[id(held)] = self._num_rows
            self._sources.append(held)
            self._num_rows += len(held)
        self.rows.append(start + row)

    def states(self) -> Tensor:
        """The chosen rows, in order."""
        return taken(torch.cat(self._sources) if len(self._sources) > 1 else self._sources[0], self.rows)


def taken(states: Tensor, rows: Sequence[int]) -> Tensor:
    """Some rows of a tensor."""
    (indices,) = copy_to_device(states.device, [np.array(rows, dtype=np.int64)])
    return states.index_select(0, indices)


@dataclass(slots=True)
class HeadFlight:
    """A step of the head."""

    step: Step
    logits: Tensor | None
    samples: list[Sample]


class HeadRunner:
    """The `Runner` of a draft head on the host. A step has the same rows as that of a draft model: its tokens follow what is computed of a
    request.

    Args:
        head: the head.
        kv: the pages, of which some belong to drafts.
        num_pages: pages of the model; the next `NUM_SCRATCH_PAGES` belong to drafts.
        max_model_len: of the model.
    """

    is_pipelined: ClassVar[bool] = False
    is_row_invariant: ClassVar[bool] = True
    num_states: ClassVar[int] = 0
    page_memory: ClassVar[None] = None
    state_memory: ClassVar[None] = None

    def __init__(
        self,
        head: DraftHead,
        kv: PagedKV,
        model_config: ModelConfig,
        tokenizer: Tokenizer,
        *,
        num_pages: int,
        max_model_len: int,
    ) -> None:
        self.head, self.model_config, self.tokenizer, self.max_model_len = head, model_config, tokenizer, max_model_len
        self.num_pages, self.num_replayed, self.num_eager = num_pages, 0, 0
        self.kv = kv
        self._zeros = torch.zeros((1, head.num_states), dtype=kv.dtype, device=kv.device)
        self._last: OrderedDict[int, _HeldStates] = OrderedDict()  # by request
        self._predicted: dict[int, _HeldStates] = {}  # by request; the states after its last draft

    @property
    def scratch_pages(self) -> range:
        """The pages for drafts."""
        return range(self.num_pages, self.num_pages + NUM_SCRATCH_PAGES)

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """See `Runner`: the settings as they are."""
        return config

    def load(self) -> None:
        """See `Runner`; the head is loaded with the model."""

    def close(self) -> None:
        """See `Runner`; drops the states."""
        self.clear()

    def clear(self) -> None:
        """Drop the states of all requests."""
        self._last.clear()
        self._predicted.clear()

    def tap(self) -> HiddenTap:
        """Receives the states of a step of the model, for `follow`."""
        return HiddenTap(self.head.config.tapped_layers)

    def knows(self, request_id: int, position: int) -> bool:
        """Whether the states of a token of a request are held, so that drafts can follow the next token."""
        last = self._last.get(request_id)
        return last is not None and last.at(position) is not None

    def forget(self, request_id: int) -> None:
        """Drop the states of a request that has ended."""
        self._last.pop(request_id, None)
        self._predicted.pop(request_id, None)

    def follow(self, step: Step, states: Tensor) -> None:
        """Compute K and V after a step of the model, as far as the next token of each is known.

        Args:
            states: [num_tokens, num_states], from `DraftHead.combine`.
        """
        rows: list[Row] = []
        inputs, kept = _Gathered(states), list[int]()
        held: list[tuple[int, int, int]] = []
        start = num_shared = 0  # tokens shared with the last of `rows`
        for row in step.rows:
            length, num_kept = len(row.token_ids), 1 + row.num_draft_tokens
            num_shared = min(num_shared, row.num_shared_tokens)
            before = self._last.get(row.request_id)
            at = None if before is None else before.at(row.num_computed_tokens - 1)
            num_skipped = int(at is None)
            if length > num_skipped:
                if before is not None and at is not None:
                    inputs.add(before.states, at)
                inputs.rows.extend(range(start, start + length - 1))
                rows.append(self._earlier(row, num_skipped, num_shared, rows)._replace(needs_sample=False))
                num_shared = _MOST
            held.append((row.request_id, row.num_computed_tokens + length - num_kept, num_kept))
            start += length
            kept.extend(range(start - num_kept, start))
        if rows:
            self.compute(Step(step.step_id, tuple(rows)), inputs.states())
        self._hold(held, taken(states, kept))

    def launch(self, step: Step) -> HeadFlight:
        """See `Runner`. States that are not known, as those of the first of several tokens, are zeros."""
        with torch.inference_mode():
            inputs, rows = _Gathered(self._zeros), list[Row]()
            for row in step.rows:
                found = self._known(row)
                if found is None:
                    inputs.rows.append(0)
                else:
                    inputs.add(*found)
                inputs.rows.extend([0] * (len(row.token_ids) - 1))
                rows.append(self._earlier(row, 0, 0, rows))
            predicted = self.compute(replace(step, rows=tuple(rows)), inputs.states())
            sampling = [row for row in step.rows if row.needs_sample]
            for index, row in enumerate(sampling):
                at = row.num_computed_tokens + len(row.token_ids) - 1
                self._predicted[row.request_id] = _HeldStates(predicted, index, at)
            return HeadFlight(step, self.head.project(predicted) if sampling else None, [])

    def sample(
        self,
        flight: HeadFlight,
        rows: Sequence[Row],
        bitmask: NDArray[np.int32] | None = None,
        walks: Mapping[int, Walk] = MappingProxyType({}),
    ) -> None:
        """See `Runner`."""
        if flight.logits is not None:
            with torch.inference_mode():
                flight.samples = self.samples(flight.logits, sampled_rows(rows), bitmask)

    def collect(self, flight: HeadFlight) -> StepOutput:
        """See `Runner`."""
        return StepOutput(flight.step.step_id, tuple(gather_samples(flight.step.rows, flight.samples)))

    def sample_again(self, flight: Any, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        """See `Runner`; no row is ever lost, since none follows an automaton."""
        raise AssertionError(indices)

    def can_follow(self, walk: Walk) -> bool:
        """See `Runner`; always False."""
        return False

    def compute(self, step: Step, states: Tensor) -> Tensor:
        """Write K and V of a step; returns the predicted states [N, num_states] of the tokens after which one is sampled.

        Args:
            states: [num_tokens, num_states], before each token.
        """
        batch = Batch.from_step(step, self.kv.page_size)
        return self.head.forward(StepAttention(batch, self.kv), states).index_select(0, batch.logit_indices)

    def samples(self, logits: Tensor, rows: Sequence[Row], bitmask: NDArray[np.int32] | None) -> list[Sample]:
        """Sample a token for each row of logits."""
        return sample_tokens(logits, rows, bitmask)

    def _hold(self, held: Sequence[tuple[int, int, int]], states: Tensor) -> None:
        """Hold the states of requests, given as (request, position of the first, number), which follow one another."""
        start = 0
        for request_id, first, count in held:
            self._last[request_id] = _HeldStates(states, start, first, count)
            self._last.move_to_end(request_id)
            self._predicted.pop(request_id, None)  # those of drafts, which may have been wrong
            start += count
        while len(self._last) > MAX_HELD:
            self._last.popitem(last=False)

    def _known(self, row: Row) -> tuple[Tensor, int] | None:
        """The states before a row of drafts, as a tensor and a row of it: those after the draft before, or the model's."""
        for of in (self._predicted, self._last):
            found = of.get(row.request_id)
            at = None if found is None else found.at(row.num_computed_tokens - 1)
            if found is not None and at is not None:
                return found.states, at
        return None

    def _earlier(self, row: Row, num_skipped: int, num_shared: int, before: Sequence[Row]) -> Row:
        """A row of the head from one of the model: each token one slot earlier, without the first ones.

        Args:
            num_shared: tokens that the row of the model shares with the one whose row of the head is the last of `before`.
        """
        at = max(0, row.num_computed_tokens - 1 + num_skipped)
        token_ids = row.token_ids[num_skipped:] if num_skipped else row.token_ids
        if before and num_shared:
            ends = (at + len(token_ids), before[-1].num_computed_tokens + len(before[-1].token_ids))
            num_shared = min(num_shared, *ends) // self.kv.page_size * self.kv.page_size
        return Row(
            row.request_id,
            token_ids,
            at,
            row.page_ids,
            num_shared if before else 0,
            row.needs_sample,
            row.params,
            input_is_pending=row.input_is_pending,
        )
