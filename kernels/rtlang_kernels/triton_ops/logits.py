"""Log-probabilities, penalties and masks on a GPU. Contracts are in `ops.py`, kernels in `logits_kernel`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.reference import sampling as reference
from rtlang_kernels.triton_ops import logits_kernel as kernels
from rtlang_kernels.triton_ops.jit import check_device
from rtlang_kernels.triton_ops.layers import power_of_two
from rtlang_kernels.triton_ops.transfer import packed_to

CHUNK = 2048
LARGEST_TOP = 64  # likeliest tokens; for more, the vocabulary is sorted
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
    stats = torch.empty((2, num_rows, num_chunks), dtype=torch.float32, device=device)
    keys = torch.empty((num_rows, num_chunks, max(num_top, 1)), dtype=torch.int64, device=device)
    chosen = torch.empty(num_rows, dtype=torch.float32, device=device)
    top_ids = torch.empty((num_rows, num_top), dtype=torch.int64, device=device)
    top_values = torch.empty((num_rows, num_top), dtype=torch.float32, device=device)
    if num_rows:
        kernels.logprob_chunks[(num_chunks, num_rows)](
            logits,
            logits.stride(0),
            vocab_size,
            stats[0],
            stats[1],
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
            stats[0],
            stats[1],
            keys,
            num_chunks,
            num_top,
            chosen,
            top_ids,
            top_values,
            NUM_CHUNKS=power_of_two(num_chunks),
            NUM_KEYS=power_of_two(max(1, num_chunks * num_top)),
            num_warps=4,
            enable_fp_fusion=True,
        )
    return chosen, top_ids, top_values


def apply_token_mask(logits: Tensor, bitmask: NDArray[np.int32], mask_rows: NDArray[np.int32]) -> None:
    """See `ops.apply_token_mask`.

    Raises:
        ValueError: the tokens of a row are not contiguous.
    """
    check_device(logits.device)
    num_rows, vocab_size = logits.shape
    if logits.stride(1) != 1:
        raise ValueError(f"logits: the tokens of a row must be contiguous, strides are {logits.stride()}")
    if num_rows:
        masks, rows = packed_to(logits.device, (bitmask, mask_rows))
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
    check_device(logits.device)
    if logits.stride(0) != 1:
        raise ValueError(f"logits: must be contiguous, stride is {logits.stride(0)}")
    both = np.concatenate((prompt_token_ids, output_token_ids))
    token_ids, where = np.unique(both, return_inverse=True)
    if len(token_ids) == 0:
        return
    counts = np.bincount(where[len(prompt_token_ids) :], minlength=len(token_ids)).astype(np.int32)
    penalties = np.array([presence_penalty, frequency_penalty], np.float64)
    ids_there, counts_there, there = packed_to(logits.device, (token_ids.astype(np.int32), counts, penalties))
    kernels.penalize[(-(-len(token_ids) // PENALTY_BLOCK),)](
        logits,
        ids_there,
        counts_there,
        len(token_ids),
        float(repetition_penalty),
        there[:1],
        there[1:],
        BLOCK=PENALTY_BLOCK,
        HAS_REPETITION=repetition_penalty != 1.0,
        HAS_COUNTS=presence_penalty != 0.0 or frequency_penalty != 0.0,
        num_warps=4,
        enable_fp_fusion=False,
    )
