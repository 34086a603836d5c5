"""A reusable plan of steps at fixed device addresses, so that captured graphs can be replayed.

Rows have any number of tokens: one in decoding, a few with drafts, and many in prompts. While rows of one token stay the same, the next
step differs only in one more key per row: the last item of each row grows by one key, and nothing else has to be planned again (`grow`).
`set` plans from scratch when rows arrive, leave or fork, when a row has more tokens, and when tails have grown so much that splits are no
longer of about equal cost. Launches are sized for a number of tokens, however they are spread over rows; kernels read the counts of the
step from the device.

Invariant: a plan that `grow` accepts equals the one that `set` would make, except for the positions of splits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.host.transfer import FixedBuffer
from rtlang_kernels.planning.shared_prefix_tiling import first_visible, tree_rectangles
from rtlang_kernels.planning.tile_sizes import LINES, gpu_properties
from rtlang_kernels.planning.work_items import (
    FULL_HI,
    HEADER_WORDS,
    ITEM_FIELDS,
    NUM_TOKENS,
    P1,
    SEGMENT,
    SPLIT_STEP,
    TOKEN,
    UNEVEN_PROGRAMS_PER_MULTIPROCESSOR,
    Schedule,
    fixed_class,
    schedule,
)
from rtlang_kernels.triton.attention.paged_attention import Variant, Work
from rtlang_kernels.triton.primitives.jit import check_device

Int32s = NDArray[np.int32]
Window = tuple[int | None, int | None]
"""Sliding window and chunk size of a layer, as `ops.paged_attention` takes them."""

MAX_GROWTH = SPLIT_STEP  # number of keys by which tails grow before rows are split again
SLACK_PAGES = MAX_GROWTH  # spare entries per row of the page table
# Partial rows of a token: of its own keys and of up to seven enclosing rectangles. Tokens beyond MANY_TOKENS belong to prompts, which
# seldom have more than one rectangle around them. A step with more partial rows is refused.
PARTIALS_PER_TOKEN, PARTIALS_PER_FURTHER_TOKEN, MANY_TOKENS = 8, 2, 256
_NAMES = ("header", "items", "first", "merge_tokens", "merge_start", "merge_rows")


class DecodePlan:
    """The plan of a step of up to `num_tokens` tokens, of as many rows or fewer. Owned by one thread.

    Attributes:
        plans: for the layers. All of them refer to the same device arrays, whatever the step, and differ in their launches. Each serves the
            steps of the plans before it and more. In order, they serve steps whose rows neither share keys nor are split, so that nothing
            is merged; steps with tiles of only the class that holds one token; and any step.
        fitting: index of the first plan that serves the step.
        input_ids: int64 [num_tokens] on the host, to be written before `upload`; surplus tokens hold 0.
        sources: int32 [num_tokens] on the host, to be written likewise; for callers that compute input ids on the device. Surplus tokens
            hold -1.
        slots: int64 [num_tokens] on the host, written by `set` and `grow`; -1 keeps a token's K and V out of the pages.
        wanted: int64 [2 * num_tokens] on the host, to be written likewise: tokens whose output the caller wants, such as those to sample
            and those to score. `set` fills it with 0.
        num_sets, num_grown: number of steps planned from scratch, and of steps planned by `grow`.
    """

    def __init__(
        self,
        num_tokens: int,
        table_words: int,
        spare_page: int,
        *,
        page_size: int,
        num_q_heads: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        windows: Sequence[Window] = ((None, None),),
        has_fixed_order: bool = False,
    ) -> None:
        """Lay out the device arrays.

        Args:
            table_words: capacity of the page table, in entries over all rows.
            spare_page: a page that no row uses; surplus tokens write to it.
            windows: of all layers.
            has_fixed_order: see `AttentionPlan`.
        """
        check_device(device)
        self.num_tokens, self.page_size, self._spare_page = num_tokens, page_size, spare_page
        self._gpu = gpu_properties(device)
        self._windows = tuple(dict.fromkeys(windows))
        wanted = UNEVEN_PROGRAMS_PER_MULTIPROCESSOR * self._gpu.num_multiprocessors // num_kv_heads + 1
        group = num_q_heads // num_kv_heads
        lines = num_tokens * group  # upper bound on the lines that share a key: wider classes stay empty
        self._has_fixed_order = has_fixed_order
        # of tiles that hold one token
        self._own_class = fixed_class(group) if has_fixed_order else bisect_left(LINES, group)
        sizes = [2 * num_tokens + wanted, num_tokens // 2 + wanted, num_tokens // 4 + wanted]
        sizes[self._own_class] = 2 * num_tokens + wanted
        if has_fixed_order:
            sizes = [size if each == self._own_class else 0 for each, size in enumerate(sizes)]
        else:
            sizes = [size if narrower < lines else 0 for size, narrower in zip(sizes, (0, *LINES[:-1]), strict=True)]
        self.class_sizes = tuple(sizes)
        # One partial row per token and rectangle, and per further split one for each token of the widest tile.
        few = min(num_tokens, MANY_TOKENS)
        self.num_partials = PARTIALS_PER_TOKEN * few + PARTIALS_PER_FURTHER_TOKEN * (num_tokens - few)
        self.num_partials += wanted * min(num_tokens, max(1, LINES[-1] // group))
        own, alone = [0] * len(LINES), [0] * len(LINES)
        own[self._own_class], alone[self._own_class] = self.class_sizes[self._own_class], num_tokens
        launches = [(tuple(alone), 0, 0), (tuple(own), self.num_partials, num_tokens)]
        if self.class_sizes != tuple(own):
            launches.append((self.class_sizes, self.num_partials, num_tokens))
        fields: dict[str, tuple[Any, tuple[int, ...]]] = {
            "input_ids": (np.int64, (num_tokens,)),
            "positions": (np.int64, (num_tokens,)),
            "slots": (np.int64, (num_tokens,)),
            "wanted": (np.int64, (2 * num_tokens,)),
            "sources": (np.int32, (num_tokens,)),
            "places": (np.int32, (num_tokens,)),
        }
        num_items = sum(self.class_sizes)
        for index in range(len(self._windows)):
            shapes = ((HEADER_WORDS,), (num_items, ITEM_FIELDS), (num_tokens,), (num_tokens,), (num_tokens + 1,))
            for name, shape in zip(_NAMES, (*shapes, (self.num_partials,)), strict=True):
                fields[f"{name}{index}"] = (np.int32, shape)
        fields["page_table"] = (np.int32, (table_words,))
        self._buffer = FixedBuffer(device, fields)
        self.input_ids: NDArray[np.int64] = self._buffer.host["input_ids"]
        self.sources: Int32s = self._buffer.host["sources"]
        self.slots: NDArray[np.int64] = self._buffer.host["slots"]
        self.wanted: NDArray[np.int64] = self._buffer.host["wanted"]
        self._rows = self._tokens = 0
        self._row_of: NDArray[np.intp] = np.zeros(0, np.intp)  # of each token
        self._width = 0
        self._table: Int32s = np.zeros((0, 0), np.int32)
        self._growth = 0
        self._tails: list[NDArray[np.intp]] = []
        self._can_grow = False
        self.num_sets = self.num_grown = 0
        self.fitting = 0
        there = self._buffer.there
        plans = []
        for counts in launches:
            work = Work(np.zeros(num_tokens, np.int32), np.zeros((0, 5), np.int32), is_fixed=True)
            for index, window in enumerate(self._windows):
                header, items, first, *merge = (there[f"{name}{index}"] for name in _NAMES)
                table = there["page_table"].view(1, -1)
                work.variants[window] = Variant(*counts, header, items, table, there["places"], first, *merge)
            arrays = (
                np.ones(num_tokens, np.int32),
                np.arange(num_tokens + 1, dtype=np.int32),
                np.zeros(num_tokens, np.int32),
            )
            heads = num_q_heads, num_kv_heads, head_dim
            nowhere = np.zeros((num_tokens, 0), np.int32)
            plan = AttentionPlan(nowhere, *arrays, page_size, *heads, dtype, device, "triton", has_fixed_order, work)
            plans.append(plan)
        self.plans = tuple(plans)

    @property
    def plan(self) -> AttentionPlan:
        """The plan that serves any step."""
        return self.plans[-1]

    def on_device(self, name: str) -> Tensor:
        """Array on the device: "input_ids", "positions", "slots", "wanted" (int64) or "sources" (int32)."""
        return self._buffer.there[name]

    def set(
        self, page_table: Int32s, seq_lens: Int32s, shared_lens: Int32s, cu_seqlens_q: Int32s | None = None
    ) -> bool:
        """Plan a step from scratch. Returns False, and leaves the plan unusable, if the step exceeds the capacity.

        Args:
            page_table: int32 [rows, pages], copied.
            seq_lens: int32 [rows], each including its new tokens.
            shared_lens: int32 [rows], as in `ops.plan_attention`.
            cu_seqlens_q: int32 [rows + 1], start of each row's new tokens; None for one token per row.
        """
        rows, pages = page_table.shape
        starts = np.arange(rows + 1, dtype=np.int32) if cu_seqlens_q is None else cu_seqlens_q
        tokens = int(starts[-1])
        self._rows, self._can_grow = 0, False
        room = len(self._buffer.host["page_table"])
        if not 0 < tokens <= self.num_tokens or rows * pages > room:
            return False
        self._width = min(pages + SLACK_PAGES, room // rows)
        self._table = self._buffer.host["page_table"][: rows * self._width].reshape(rows, self._width)
        self._table[:, :pages] = page_table
        self._table[:, pages:] = 0
        whole = self.plan
        plan = AttentionPlan(
            self._table,
            np.ascontiguousarray(seq_lens, np.int32),
            starts,
            np.ascontiguousarray(shared_lens, np.int32),
            self.page_size,
            whole.num_q_heads,
            whole.num_kv_heads,
            whole.head_dim,
            whole.dtype,
            whole.device,
            whole.backend,
            whole.has_fixed_order,
        )
        places = plan.token_positions()
        table = tree_rectangles(plan)
        self._tails = []
        self.fitting = 0
        can_grow = tokens == rows
        for index, window in enumerate(self._windows):
            first = first_visible(places, *window)
            cut = schedule(plan, table, first, self._gpu, is_windowed=window != (None, None))
            if not self._put(index, cut, first):
                return False
            items = cut.items
            is_tail = items[:, P1] == places[items[:, TOKEN]] + 1
            tails = np.flatnonzero(is_tail & (items[:, NUM_TOKENS] == 1))
            # a window also moves at its lower end; a last key that rows share cannot grow for one row
            can_grow &= len(tails) == rows and not first.any()
            self._tails.append(tails)
        host = self._buffer.host
        host["places"][:tokens], host["places"][tokens:] = places, 0
        host["positions"][:] = host["places"]
        self.input_ids[tokens:], self.sources[tokens:], self.wanted[:] = 0, -1, 0
        self._rows, self._tokens, self._can_grow, self._growth = rows, tokens, can_grow, 0
        self._row_of = np.repeat(np.arange(rows), np.diff(starts))
        self.num_sets += 1
        self._write_slots()
        return True

    def grow(self, rows: NDArray[np.intp], columns: NDArray[np.intp], page_ids: Int32s) -> bool:
        """Plan the next step of the same rows of one token, with one more key each. Returns False if it must be planned from scratch.

        Args:
            rows, columns, page_ids: entries of the page table that are new or have changed.
        """
        if not self._can_grow or self._growth >= MAX_GROWTH:
            return False
        if len(columns) and int(columns.max()) >= self._width:
            return False
        host, count = self._buffer.host, self._rows
        places = host["places"][:count]
        for window in self._windows:
            if window != (None, None) and first_visible(places + np.int32(1), *window).any():
                self._can_grow = False
                return False
        if self._has_fixed_order and not ((places + 1) % SEGMENT).all():  # the new key of a row begins a part
            self._can_grow = False
            return False
        self._table[rows, columns] = page_ids
        places += 1
        host["positions"][:count] += 1
        for index, tails in enumerate(self._tails):
            items = host[f"items{index}"]
            items[tails, P1] += 1
            if not self._has_fixed_order or self._windows[index] == (None, None):
                items[tails, FULL_HI] += 1
        self._growth += 1
        self.num_grown += 1
        self._write_slots()
        return True

    def upload(self) -> None:
        """Copy the step to the device, after `set` or `grow` has returned True and input ids have been written. Does not wait."""
        self._buffer.upload(self._rows * self._width)

    def _write_slots(self) -> None:
        count, slots = self._tokens, self.slots
        places = self._buffer.host["places"][:count]
        pages = self._table[self._row_of, places // self.page_size]
        slots[:count] = pages.astype(np.int64) * self.page_size + places % self.page_size
        slots[count:] = self._spare_page * self.page_size + np.arange(self.num_tokens - count) % self.page_size

    def _put(self, index: int, cut: Schedule, first: Int32s) -> bool:
        sizes = cut.class_sizes
        if any(size > most for size, most in zip(sizes, self.class_sizes, strict=True)):
            return False
        if cut.num_partials > self.num_partials:
            return False
        is_shared = any(size for number, size in enumerate(sizes) if number != self._own_class)
        self.fitting = max(self.fitting, len(self.plans) - 1 if is_shared else int(cut.num_partials > 0))
        host = self._buffer.host
        host[f"header{index}"][:] = cut.header(self._width)
        merged = len(cut.merge_tokens)
        parts = {
            "items": cut.items,
            "first": first,
            "merge_tokens": cut.merge_tokens,
            "merge_start": cut.merge_start[: merged + 1],
            "merge_rows": cut.merge_rows,
        }
        for name, part in parts.items():
            host[f"{name}{index}"][: len(part)] = part
        return True
