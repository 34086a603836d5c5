"""Runs a draft head along with the model: K and V of its layers after each step, and drafts between steps.

K and V of the head's layers lie in the pages of the model, as those of further layers do. So a prefix that requests share, that is copied,
or that comes back from a tier has them, too. The head is one position behind the model: the states of a token and the token that follows
give K and V in the slot of the former. Therefore a step of the head has the tokens of the model's step, each one slot earlier. Where the
states before the first token of a row are not known, because its prefix was found in the cache, the slot keeps what the sequence before
has written; a draft may be worse for it, and no text changes.

The pages that drafts need beyond those of a request are scratch pages at the end of the pool.
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

NUM_SCRATCH_PAGES = 64
"""Pages for drafts of all rows of a step beyond their own."""
MAX_HELD = 4096
"""Most requests whose last states are held."""

_MOST = 1 << 40


@dataclass(slots=True)
class _LastStates:
    """The states of the last tokens of a request: [num_tokens, num_states], of which the first is that of token `first`."""

    first: int
    states: Tensor

    def at(self, position: int) -> Tensor | None:
        """The states [1, num_states] of a token, if they are here."""
        index = position - self.first
        return self.states[index : index + 1] if 0 <= index < len(self.states) else None


@dataclass(slots=True)
class HeadFlight:
    """A step of the head."""

    step: Step
    logits: Tensor | None
    samples: list[Sample]


class HeadRunner:
    """The `Runner` of a draft head. A step has the same rows as that of a draft model: its tokens follow what is computed of a request.

    Args:
        head: the head.
        kv: the pages, of which the last `NUM_SCRATCH_PAGES` belong to drafts.
        max_model_len: of the model.
    """

    is_pipelined: ClassVar[bool] = False
    is_row_invariant: ClassVar[bool] = True
    num_states: ClassVar[int] = 0
    page_memory: ClassVar[None] = None
    state_memory: ClassVar[None] = None

    def __init__(
        self, head: DraftHead, kv: PagedKV, model_config: ModelConfig, tokenizer: Tokenizer, max_model_len: int
    ) -> None:
        self.head, self.model_config, self.tokenizer, self.max_model_len = head, model_config, tokenizer, max_model_len
        self.num_replayed = self.num_eager = 0
        self._kv = kv
        self._last: OrderedDict[int, _LastStates] = OrderedDict()  # by request
        self._predicted: dict[int, _LastStates] = {}  # by request; the states after its last draft

    @property
    def num_pages(self) -> int:
        """Pages of the model."""
        return self._kv.num_pages - NUM_SCRATCH_PAGES

    @property
    def scratch_pages(self) -> range:
        """The pages for drafts."""
        return range(self.num_pages, self._kv.num_pages)

    def with_limits(self, config: RuntimeConfig) -> RuntimeConfig:
        """See `Runner`: the settings as they are."""
        return config

    def load(self) -> None:
        """See `Runner`; the head is loaded with the model."""

    def close(self) -> None:
        """See `Runner`; drops the states."""
        self._last.clear()
        self._predicted.clear()

    def tap(self) -> HiddenTap:
        """Receives the states of a step of the model that the head needs."""
        return HiddenTap(self.head.config.tapped_layers)

    def knows(self, request_id: int, position: int) -> bool:
        """Whether the states of a token of a request are held, so that drafts can follow the next token."""
        last = self._last.get(request_id)
        return last is not None and last.at(position) is not None

    def forget(self, request_id: int) -> None:
        """Drop the states of a request that has ended."""
        self._last.pop(request_id, None)
        self._predicted.pop(request_id, None)

    def follow(self, step: Step, tap: HiddenTap) -> None:
        """Compute K and V after a step of the model, as far as the next token of each is known."""
        states = self.head.combine(tap.states)
        rows: list[Row] = []
        parts: list[Tensor] = []
        start = num_shared = 0  # tokens shared with the last of `rows`
        for row in step.rows:
            length = len(row.token_ids)
            own = states[start : start + length]
            start += length
            num_shared = min(num_shared, row.num_shared_tokens)
            before = self._before(row, self._last)
            num_skipped = int(before is None)
            if length > num_skipped:
                parts += [own[:-1]] if before is None else [before, own[:-1]]
                rows.append(self._earlier(row, num_skipped, num_shared, rows))
                num_shared = _MOST
            num_kept = 1 + row.num_draft_tokens
            first = row.num_computed_tokens + length - num_kept
            self._last[row.request_id] = _LastStates(first, own[length - num_kept :].clone())
            self._last.move_to_end(row.request_id)
            self._predicted.pop(row.request_id, None)  # those of drafts, which may have been wrong
        while len(self._last) > MAX_HELD:
            self._last.popitem(last=False)
        if rows:
            self._forward(Step(step.step_id, tuple(rows)), torch.cat(parts))

    def launch(self, step: Step) -> HeadFlight:
        """See `Runner`. States that are not known, as those of the first of several tokens, are zeros."""
        rows: list[Row] = []
        with torch.inference_mode():
            num_tokens = sum(len(row.token_ids) for row in step.rows)
            states = torch.zeros((num_tokens, self.head.num_states), dtype=self._kv.dtype, device=self._kv.device)
            start = 0
            for row in step.rows:
                found = self._before(row, self._predicted)
                found = self._before(row, self._last) if found is None else found
                if found is not None:
                    states[start] = found[0]
                start += len(row.token_ids)
                rows.append(self._earlier(row, 0, 0, rows))
            batch, predicted = self._forward(replace(step, rows=tuple(rows)), states)
            starts = batch.cu_seqlens_q.tolist()
            for row, end in zip(step.rows, starts[1:], strict=True):
                at = row.num_computed_tokens + len(row.token_ids) - 1
                self._predicted[row.request_id] = _LastStates(at, predicted[end - 1 : end])
            logits = None
            if batch.sampling_rows:
                logits = self.head.project(predicted.index_select(0, batch.logit_indices))
        return HeadFlight(step, logits, [])

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
                flight.samples = sample_tokens(flight.logits, sampled_rows(rows), bitmask)

    def collect(self, flight: HeadFlight) -> StepOutput:
        """See `Runner`."""
        return StepOutput(flight.step.step_id, tuple(gather_samples(flight.step.rows, flight.samples)))

    def sample_again(self, flight: Any, indices: Sequence[int], bitmask: NDArray[np.int32]) -> list[SampledRow]:
        """See `Runner`; no row is ever lost, since none follows an automaton."""
        raise AssertionError(indices)

    def can_follow(self, walk: Walk) -> bool:
        """See `Runner`; always False."""
        return False

    def _forward(self, step: Step, states: Tensor) -> tuple[Batch, Tensor]:
        batch = Batch.from_step(step, self._kv.page_size)
        return batch, self.head.forward(StepAttention(batch, self._kv), states)

    def _before(self, row: Row, of: Mapping[int, _LastStates]) -> Tensor | None:
        """The states [1, num_states] of the token before a row."""
        last = of.get(row.request_id)
        return None if last is None or not row.num_computed_tokens else last.at(row.num_computed_tokens - 1)

    def _earlier(self, row: Row, num_skipped: int, num_shared: int, before: Sequence[Row]) -> Row:
        """A row of the head from one of the model: each token one slot earlier, without the first ones.

        Args:
            num_shared: tokens that the row of the model shares with the one whose row of the head is the last of `before`.
        """
        at = max(0, row.num_computed_tokens - 1 + num_skipped)
        token_ids = row.token_ids[num_skipped:] if num_skipped else row.token_ids
        if before and num_shared:
            ends = (at + len(token_ids), before[-1].num_computed_tokens + len(before[-1].token_ids))
            num_shared = min(num_shared, *ends) // self._kv.page_size * self._kv.page_size
        return Row(
            row.request_id,
            token_ids,
            at,
            row.page_ids,
            num_shared if before else 0,
            row.needs_sample and not row.num_draft_tokens,
            row.params,
        )
