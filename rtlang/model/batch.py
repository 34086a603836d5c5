"""The arrays of a step, built with a few numpy operations.

The tokens of all rows are concatenated without padding. Arrays used for planning on the host are numpy, those used by layers are torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.step import Row, Step
from rtlang_kernels.contract.state_plan import NO_SLOT, StatePlan


@dataclass(frozen=True, slots=True)
class Batch:
    """All arrays of one forward pass, for T tokens, B rows, P pages in the longest row and N rows of logits.

    Attributes:
        input_ids, positions, slot_mapping: int64 [T]; slot = page_id * page_size + offset, -1 for a replayed token.
        cu_seqlens_q: int32 [B + 1], start of each row's tokens.
        seq_lens: int32 [B], length of each sequence including this step's tokens.
        page_table: int32 [B, P], padded with 0.
        shared_lens: int32 [B], leading tokens in pages shared with the previous row.
        logit_indices: int64 [N], tokens that need logits: first those after which a token is sampled, row by row, then all scored ones.
        sampling_rows: the row of each token that is sampled, in order; the first len(sampling_rows) logits belong to them.
        scoring_rows: rows with scores, in order; len(score_token_ids) logits each follow.
        page_size: tokens per page.
        states: the states of the rows; None if no row has any.
    """

    input_ids: Tensor
    positions: Tensor
    slot_mapping: Tensor
    cu_seqlens_q: NDArray[np.int32]
    seq_lens: NDArray[np.int32]
    page_table: NDArray[np.int32]
    shared_lens: NDArray[np.int32]
    logit_indices: Tensor
    sampling_rows: tuple[int, ...]
    scoring_rows: tuple[int, ...]
    page_size: int
    states: StatePlan | None = None

    @property
    def num_tokens(self) -> int:
        """Number of tokens computed in this step."""
        return len(self.input_ids)

    @classmethod
    def from_step(cls, step: Step, page_size: int) -> Batch:
        """Build the arrays of a step.

        Raises:
            ValueError: there is no row, or a row has no tokens, too few pages, or scores outside its tokens.
        """
        rows = step.rows
        if not rows:
            raise ValueError("a step needs at least one row")
        numbers = [
            (
                len(row.token_ids),
                row.num_computed_tokens,
                len(row.page_ids),
                row.num_shared_tokens,
                row.num_draft_tokens,
            )
            for row in rows
        ]
        lengths_of, computed_of, num_pages, shared_of, num_drafts = zip(*numbers, strict=True)
        lengths, computed = np.array(lengths_of, dtype=np.int32), np.array(computed_of, dtype=np.int32)
        cu_seqlens_q = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(lengths, out=cu_seqlens_q[1:])
        seq_lens = computed + lengths
        for index, row in enumerate(rows):
            _check_row(row, int(lengths[index]), num_pages[index] * page_size)
        page_table = np.zeros((len(rows), max(num_pages)), dtype=np.int32)
        for index, row in enumerate(rows):
            page_table[index, : num_pages[index]] = row.page_ids
        num_tokens = int(cu_seqlens_q[-1])
        if num_tokens == len(rows):  # pure decoding: one token per row
            row_of_token, positions = np.arange(num_tokens), computed
            input_ids = np.array([row.token_ids[0] for row in rows], dtype=np.int64)
        else:
            row_of_token = np.repeat(np.arange(len(rows)), lengths)
            positions = np.arange(num_tokens, dtype=np.int32) + np.repeat(computed - cu_seqlens_q[:-1], lengths)
            input_ids = np.concatenate([np.asarray(row.token_ids, dtype=np.int64) for row in rows])
        pages = page_table[row_of_token, positions // page_size].astype(np.int64)
        slots = pages * page_size + positions % page_size
        if any(row.num_replayed_tokens for row in rows):
            replayed = np.array([row.num_replayed_tokens for row in rows])
            slots[np.arange(num_tokens) - np.repeat(cu_seqlens_q[:-1], lengths) < np.repeat(replayed, lengths)] = -1
        sampling = tuple(index for index, row in enumerate(rows) for _ in range(row.num_sampled))
        scoring = tuple(index for index, row in enumerate(rows) if len(row.score_token_ids))
        last = cu_seqlens_q[1:][list(sampling)] - 1
        if any(num_drafts):
            last -= np.array([left for row in rows for left in range(row.num_sampled - 1, -1, -1)], dtype=np.int32)
        scored = [_scored_tokens(rows[index], int(cu_seqlens_q[index])) for index in scoring]
        return cls(
            input_ids=torch.from_numpy(input_ids),
            positions=torch.from_numpy(positions.astype(np.int64)),
            slot_mapping=torch.from_numpy(slots),
            cu_seqlens_q=cu_seqlens_q,
            seq_lens=seq_lens,
            page_table=page_table,
            shared_lens=np.array(shared_of, dtype=np.int32),
            logit_indices=torch.from_numpy(np.concatenate([last.astype(np.int64), *scored])),
            sampling_rows=sampling,
            scoring_rows=scoring,
            page_size=page_size,
            states=state_plan(rows, cu_seqlens_q),
        )


def moved(batch: Batch, device: torch.device) -> Batch:
    """Copy the batch's tensors to a device and wait."""
    return replace(
        batch,
        input_ids=batch.input_ids.to(device),
        positions=batch.positions.to(device),
        slot_mapping=batch.slot_mapping.to(device),
        logit_indices=batch.logit_indices.to(device),
        states=None if batch.states is None else batch.states.moved(device),
    )


def state_plan(rows: Sequence[Row], cu_seqlens_q: NDArray[np.int32]) -> StatePlan | None:
    """The states of a step: of all rows, or of none."""
    if rows[0].states is None:
        return None
    states = [row.states for row in rows if row.states is not None]
    sources = [NO_SLOT if each.source is None else each.source for each in states]
    return StatePlan.of(cu_seqlens_q, sources, [each.marks for each in states])


def _check_row(row: Row, num_tokens: int, capacity: int) -> None:
    if num_tokens == 0:
        raise ValueError(f"row of request {row.request_id} has no tokens")
    if row.num_computed_tokens + num_tokens > capacity:
        raise ValueError(
            f"row of request {row.request_id} has pages for {capacity} tokens, "
            f"but needs {row.num_computed_tokens + num_tokens}"
        )
    if row.num_draft_tokens and not (
        row.needs_sample and 0 < row.num_draft_tokens < num_tokens and not row.score_token_ids
    ):
        raise ValueError(
            f"row of request {row.request_id} has {row.num_draft_tokens} drafts in {num_tokens} tokens: expected fewer drafts than "
            "tokens, a sample and no scores"
        )
    if len(row.score_token_ids) and not 0 <= row.score_offset <= num_tokens - len(row.score_token_ids):
        raise ValueError(
            f"row of request {row.request_id} scores {len(row.score_token_ids)} tokens from offset {row.score_offset}, "
            f"outside its {num_tokens} tokens"
        )


def _scored_tokens(row: Row, start: int) -> NDArray[np.int64]:
    first = start + row.score_offset
    return np.arange(first, first + len(row.score_token_ids), dtype=np.int64)
