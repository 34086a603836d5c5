"""Device arrays of a step: uploaded as a whole, or written into a reusable plan that graphs read.

`on_device` uploads all arrays that layers need in one copy. `FixedSteps` writes steps into a plan. It detects that a step of pure decoding
continues the rows of the previous one by one token each, and then updates only what changed: a few entries of the page table and one number
per row. A step with prompts or drafts is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row
from rtlang.model.batch import Batch, state_plan
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.host.transfer import copy_to_device

Int32s = NDArray[np.int32]


class KeptPlan(Protocol):
    """The part of `JointPlan` that `FixedSteps` needs."""

    page_size: int
    input_ids: NDArray[np.int64]
    sources: Int32s
    slots: NDArray[np.int64]
    wanted: NDArray[np.int64]
    num_sets: int
    num_grown: int
    fitting: int

    def set(
        self, page_table: Int32s, seq_lens: Int32s, shared_lens: Int32s, cu_seqlens_q: Int32s | None = None
    ) -> bool:
        """Plan from scratch."""

    def grow(self, rows: NDArray[np.intp], columns: NDArray[np.intp], page_ids: Int32s) -> bool:
        """Plan the step after the last one."""

    def upload(self) -> None:
        """Copy the step to the device."""

    def on_device(self, name: str) -> Tensor:
        """The tensors that layers read."""


class KeptStates(Protocol):
    """The kernels' `DecodeStates`."""

    def set(self, step: StatePlan) -> bool:
        """Write the states of a step; False if it does not fit."""

    def upload(self) -> None:
        """Copy the step to the device."""


class HeadsPlan(KeptPlan, Protocol):
    """The part of the kernels' `DecodePlan` that `JointPlan` needs."""

    @property
    def plans(self) -> tuple[AttentionPlan, ...]:
        """Plans for the layers, by level; each fits every step that lower levels fit."""


Heads = tuple[int, int, int]
"""Query heads, KV heads and head size."""


class JointPlan:
    """Reusable plans of the same steps, one per head geometry of the model, combined into one. Used by one thread.

    Attributes:
        plans: by head geometry.
        input_ids, sources, slots, wanted, page_size: as in `DecodePlan`, common to all.
        num_sets, num_grown, fitting: as in `DecodePlan`; `fitting` is the lowest level that fits the step for every geometry.
        num_levels: number of levels; each fits every step that lower levels fit.
    """

    def __init__(self, plans: Mapping[Heads, HeadsPlan]) -> None:
        self.plans = dict(plans)
        self._first = next(iter(self.plans.values()))
        first = self._first
        self.page_size, self.input_ids, self.sources = first.page_size, first.input_ids, first.sources
        self.slots, self.wanted = first.slots, first.wanted
        self.num_levels = max(len(plan.plans) for plan in self.plans.values())
        self.num_sets = self.num_grown = self.fitting = 0

    def attention(self, heads: Heads, level: int) -> AttentionPlan:
        """The plan of layers with these heads at a level."""
        plans = self.plans[heads].plans
        return plans[min(level, len(plans) - 1)]

    def on_device(self, name: str) -> Tensor:
        """See `HeadsPlan`."""
        return self._first.on_device(name)

    def set(
        self, page_table: Int32s, seq_lens: Int32s, shared_lens: Int32s, cu_seqlens_q: Int32s | None = None
    ) -> bool:
        """See `HeadsPlan`."""
        if not all(plan.set(page_table, seq_lens, shared_lens, cu_seqlens_q) for plan in self.plans.values()):
            return False
        self.num_sets += 1
        self.fitting = max(plan.fitting for plan in self.plans.values())
        return True

    def grow(self, rows: NDArray[np.intp], columns: NDArray[np.intp], page_ids: Int32s) -> bool:
        """See `HeadsPlan`. If False, some plans may have grown, and all must be `set`."""
        if not all(plan.grow(rows, columns, page_ids) for plan in self.plans.values()):
            return False
        self.num_grown += 1
        return True

    def upload(self) -> None:
        """See `HeadsPlan`."""
        for plan in self.plans.values():
            plan.upload()


def on_device(batch: Batch, sources: Int32s, sampled: Tensor, device: torch.device) -> Batch:
    """The batch with its tensors on the device.

    Args:
        sources: int32 [num_tokens], index in `sampled` of the token for each placeholder; -1 for known tokens.
        sampled: int64, tokens on the device.
    """
    tensors = (batch.input_ids, batch.positions, batch.slot_mapping, batch.logit_indices)
    states = batch.states
    of_states = [] if states is None else states.arrays
    ids, positions, slots, indices, there, *moved = copy_to_device(
        device, [*(tensor.numpy() for tensor in tensors), sources, *of_states]
    )
    if (sources >= 0).any():
        ids = resolved(ids, there, sampled)
    return replace(
        batch,
        input_ids=ids,
        positions=positions,
        slot_mapping=slots,
        logit_indices=indices,
        states=None if states is None else replace(states, tensors=tuple(moved)),
    )


def resolved(input_ids: Tensor, sources: Tensor, sampled: Tensor) -> Tensor:
    """Input ids with placeholders replaced by sampled tokens: int64 [num_tokens]. Only enqueues work."""
    return torch.where(sources >= 0, sampled.index_select(0, sources.clamp(min=0)), input_ids)


def sources_of(rows: Sequence[Row], sampled_at: Mapping[int, int]) -> Int32s:
    """Index of each row's first token among the tokens sampled last: int32 [num_rows]; -1 if the host knows it."""
    return np.array([sampled_at[row.request_id] if row.input_is_pending else -1 for row in rows], dtype=np.int32)


def token_sources(batch: Batch, rows: Sequence[Row], sampled_at: Mapping[int, int]) -> Int32s:
    """Index of each token of a batch among the tokens sampled last: int32 [num_tokens]; -1 if the host knows it."""
    sources = np.full(batch.num_tokens, -1, dtype=np.int32)
    sources[batch.cu_seqlens_q[:-1]] = sources_of(rows, sampled_at)
    return sources


@dataclass(frozen=True, slots=True)
class _Rows:
    """Identifies the rows of a step, to detect a step that continues them."""

    request_ids: tuple[int, ...]
    computed: NDArray[np.int64]
    shared: NDArray[np.int64]

    def go_on_with(self, before: _Rows) -> bool:
        return (
            self.request_ids == before.request_ids
            and np.array_equal(self.computed, before.computed + 1)
            and np.array_equal(self.shared, before.shared)
        )


class FixedSteps:
    """Writes steps into a reusable plan. Owned by the runner.

    Args:
        plan: plan with fixed buffers.
        replays: by level (`plan.fitting`), a function that computes the plan and returns what the decoder's `forward` does for all its
            tokens, or for the first `num_wanted` of `plan.wanted`.
        states: of a model with recurrent layers.
        num_wanted: the maximum number of wanted tokens if a replay returns these only; None if it returns all.
    """

    def __init__(
        self,
        plan: KeptPlan,
        replays: Sequence[Callable[[], Tensor]],
        states: KeptStates | None = None,
        num_wanted: int | None = None,
    ) -> None:
        self.plan, self._replays, self._states, self._num_wanted = plan, replays, states, num_wanted
        self._before: _Rows | None = None
        self._count, self._is_plain = 0, True  # of wanted tokens, and whether these are all tokens in order

    def replay(self) -> Tensor:
        """Compute the step written last; returns the decoder's states of its wanted tokens, in order."""
        found = self._replays[self.plan.fitting]()
        if self._is_plain or self._num_wanted is not None:
            return found[: self._count]
        return found.index_select(0, self.plan.on_device("wanted")[: self._count])

    def forget(self) -> None:
        """Forget the last step: the next one does not continue it."""
        self._before = None

    def write_decoding(self, rows: Sequence[Row], sampled_at: Mapping[int, int]) -> bool:
        """Write a step of rows of one token each, all of which are wanted; False if it does not fit."""
        count = len(rows)
        now = _Rows(
            tuple(row.request_id for row in rows),
            np.fromiter((row.num_computed_tokens for row in rows), np.int64, count),
            np.fromiter((row.num_shared_tokens for row in rows), np.int64, count),
        )
        before, self._before = self._before, None
        # There are few numbers of states, so that they are not updated in place.
        if self._states is not None:
            states = state_plan(rows, np.arange(count + 1, dtype=np.int32))
            if states is None or not self._states.set(states):
                return False
        goes_on = before is not None and now.go_on_with(before) and self._grow(rows, now.computed)
        if not goes_on and not self._set(rows, now):
            return False
        self.plan.input_ids[:count] = np.fromiter((row.token_ids[0] for row in rows), np.int64, count)
        self.plan.sources[:count] = sources_of(rows, sampled_at)
        if self._num_wanted is not None:
            self.plan.wanted[:count] = np.arange(count)
        self._count, self._is_plain, self._before = count, True, now
        self._upload()
        return True

    def write(self, batch: Batch, sources: Int32s) -> bool:
        """Write any step; False if it does not fit.

        Args:
            sources: int32 [num_tokens], see `token_sources`.
        """
        self._before = None
        plan, count, most = self.plan, len(batch.logit_indices), self._num_wanted or len(self.plan.wanted)
        width = -(-int(batch.seq_lens.max()) // plan.page_size)
        rows = batch.page_table[:, :width], batch.seq_lens, batch.shared_lens, batch.cu_seqlens_q
        if count > most or not plan.set(*rows):
            return False
        if self._states is not None and (batch.states is None or not self._states.set(batch.states)):
            return False
        num_tokens = batch.num_tokens
        plan.input_ids[:num_tokens], plan.sources[:num_tokens] = batch.input_ids.numpy(), sources
        plan.slots[:num_tokens] = batch.slot_mapping.numpy()  # with none for replayed tokens
        plan.wanted[:count] = batch.logit_indices.numpy()
        self._count, self._is_plain = count, False
        self._upload()
        return True

    def _upload(self) -> None:
        self.plan.upload()
        if self._states is not None:
            self._states.upload()

    def _grow(self, rows: Sequence[Row], computed: NDArray[np.int64]) -> bool:
        size = self.plan.page_size
        # A page is replaced only when it is full and the tree already holds an equal one.
        offsets = computed % size
        touched = np.flatnonzero((offsets == 0) | (offsets == size - 1))
        lines, columns, page_ids = [], [], []
        for index in touched.tolist():
            last = int(computed[index]) // size
            for column in range(max(0, last - 1), last + 1):
                lines.append(index)
                columns.append(column)
                page_ids.append(rows[index].page_ids[column])
        return self.plan.grow(
            np.array(lines, dtype=np.intp), np.array(columns, dtype=np.intp), np.array(page_ids, dtype=np.int32)
        )

    def _set(self, rows: Sequence[Row], now: _Rows) -> bool:
        lengths = now.computed + 1
        width = -(-int(lengths.max()) // self.plan.page_size)
        table = np.zeros((len(rows), width), dtype=np.int32)
        for index, row in enumerate(rows):
            pages = row.page_ids[:width]
            table[index, : len(pages)] = pages
        return self.plan.set(table, lengths.astype(np.int32), now.shared.astype(np.int32))
