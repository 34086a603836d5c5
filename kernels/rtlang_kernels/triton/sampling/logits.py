"""GPU log-probabilities, penalties and masks. Contracts are in `ops.py`, kernels in `logits_kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.planning.tile_sizes import power_of_two
from rtlang_kernels.reference import sampling as reference
from rtlang_kernels.triton.primitives.jit import check_device
from rtlang_kernels.triton.sampling import logits_kernel as kernels

CHUNK = 2048
USUAL_TOP, LARGEST_TOP = 8, 64  # numbers of likeliest tokens; beyond the second, the vocabulary is sorted
PENALTY_BLOCK = 256


def logprobs(logits: Tensor, token_ids: Tensor, num_top: int) -> tuple[Tensor, Tensor, Tensor]:
    """See `ops.logprobs`."""
    device = logits.device
    check_device(device)
    num_rows, vocab_size = logits.shape
    token_ids = token_ids.to(device)
    if num_top > LARGEST_TOP:
        return reference.logprobs(logits, token_ids, num_top)
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    num_chunks = -(-vocab_size // CHUNK)
    tops, sums = (torch.empty((num_rows, num_chunks), dtype=torch.float32, device=device) for _ in range(2))
    keys = torch.empty((num_rows, num_chunks, max(num_top, 1)), dtype=torch.int64, device=device)
    chosen = torch.empty(num_rows, dtype=torch.float32, device=device)
    top_ids = torch.empty((num_rows, num_top), dtype=torch.int64, device=device)
    top_values = torch.empty((num_rows, num_top), dtype=torch.float32, device=device)
    if num_rows:
        kernels.logprob_chunks[(num_chunks, num_rows)](
            logits,
            logits.stride(0),
            vocab_size,
            tops,
            sums,
            keys,
            num_top,
            BLOCK=CHUNK,
            num_warps=4,
            enable_fp_fusion=True,
        )
        kernels.logprob_finish[(num_rows,)](
            logits,
            logits.stride(0),
            token_ids,
            tops,
            sums,
            keys,
            num_chunks,
            num_top,
            chosen,
            top_ids,
            top_values,
            NUM_CHUNKS=power_of_two(num_chunks),
            NUM_KEYS=num_keys(num_chunks, num_top),
            num_warps=4,
            enable_fp_fusion=True,
        )
    return chosen, top_ids, top_values


def num_keys(num_chunks: int, num_top: int) -> int:
    """Number of keys (a power of two) that the finishing program holds; the same for all usual values, so that they share one kernel."""
    return power_of_two(num_chunks * max(num_top, USUAL_TOP))


def apply_token_mask(logits: Tensor, bitmask: NDArray[np.int32], mask_rows: NDArray[np.int32]) -> None:
    """See `ops.apply_token_mask`.

    Raises:
        ValueError: the tokens of a row are not contiguous.
    """
    check_device(logits.device)
    num_rows, vocab_size = logits.shape
    if logits.stride(1) != 1:
        raise ValueError(f"logits strides = {logits.stride()}: expected contiguous tokens within a row")
    if num_rows:
        masks, rows = copy_to_device(logits.device, (bitmask, mask_rows))
        kernels.mask_logits[(-(-vocab_size // CHUNK), num_rows)](
            logits,
            logits.stride(0),
            vocab_size,
            masks,
            rows,
            masks.shape[1],
            BLOCK=CHUNK,
            num_warps=4,
            enable_fp_fusion=True,
        )


def apply_penalties(
    logits: Tensor,
    prompt_token_ids: NDArray[np.int64],
    output_token_ids: NDArray[np.int64],
    repetition_penalty: float,
    presence_penalty: float,
    frequency_penalty: float,
) -> None:
    """See `ops.apply_penalties`.

    Raises:
        ValueError: the logits are not contiguous.
    """
    if logits.stride(0) != 1:
        raise ValueError(f"logits stride = {logits.stride(0)}: expected contiguous logits")
    each = Penalties(0, prompt_token_ids, output_token_ids, repetition_penalty, presence_penalty, frequency_penalty)
    penalize_rows(logits[None], [each])


@dataclass(frozen=True, slots=True)
class Penalties:
    """The penalties of one row of logits, as in `ops.apply_penalties`."""

    row: int
    prompt_token_ids: NDArray[np.int64]
    output_token_ids: NDArray[np.int64]
    repetition: float
    presence: float
    frequency: float


def penalize_rows(logits: Tensor, penalties: Sequence[Penalties]) -> None:
    """Apply `ops.apply_penalties` to some rows of logits [num_rows, vocab_size] in one copy and one launch.

    Args:
        penalties: no row twice.
    Raises:
        ValueError: the tokens of a row are not contiguous.
    """
    check_device(logits.device)
    if logits.stride(1) != 1:
        raise ValueError(f"logits strides = {logits.stride()}: expected contiguous tokens within a row")
    rows, ids, counts = [], [], []
    for each in penalties:
        both = np.concatenate((each.prompt_token_ids, each.output_token_ids)).astype(np.int64)
        tokens, where = np.unique(both, return_inverse=True)
        ids.append(tokens)
        counts.append(np.bincount(where[len(each.prompt_token_ids) :], minlength=len(tokens)))
        rows.append(np.full(len(tokens), each.row))
    num_entries = sum(map(len, ids))
    if num_entries == 0:
        return
    repetitions = np.ones(len(logits), np.float32)
    typed_intrinsic = np.zeros((2, len(logits)), np.float64)
    for each in penalties:
        repetitions[each.row] = each.repetition
        typed_intrinsic[:, each.row] = each.presence, each.frequency
    entries = [np.concatenate(part).astype(np.int32) for part in (rows, ids, counts)]
    rows_there, ids_there, counts_there, *factors = copy_to_device(
        logits.device, (*entries, repetitions, *typed_intrinsic)
    )
    kernels.penalize[(-(-num_entries // PENALTY_BLOCK),)](
        logits,
        logits.stride(0),
        rows_there,
        ids_there,
        counts_there,
        num_entries,
        *factors,
        BLOCK=PENALTY_BLOCK,
        num_warps=4,
        enable_fp_fusion=False,
    )
