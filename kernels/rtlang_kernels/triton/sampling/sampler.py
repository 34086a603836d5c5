"""GPU sampling: two launches, five more if rows have filters, without waiting for the device. The contract is `ops.sample`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.sampler_settings import GREEDY_TEMPERATURE, RowSettings, SamplerSettings
from rtlang_kernels.host.transfer import copy_to_device
from rtlang_kernels.planning.tile_sizes import power_of_two
from rtlang_kernels.reference.noise import mix_keys
from rtlang_kernels.triton.primitives.jit import check_device
from rtlang_kernels.triton.sampling.candidates_kernel import (
    NUM_BINS,
    filter_choose,
    filter_collect,
    filter_cut,
    filter_histogram,
)
from rtlang_kernels.triton.sampling.filter_kernel import sample_filtered
from rtlang_kernels.triton.sampling.sample_kernel import FILTERED, GREEDY, SAMPLED, sample_finish, sample_stats

CHUNK = 2048  # tokens per program
FINISH_WARPS = 8  # warps of the program that finishes a row, one chunk at a time
FILTER_CHUNK, FILTER_WARPS = 4096, 8  # for filtered rows that a single program reads
CAPACITY = 4096  # candidates that one program can hold


@dataclass(frozen=True, slots=True)
class StagedSettings:
    """Sampling settings on the device, from `stage`; a captured graph may read them repeatedly."""

    num_filtered: int
    has_mask: bool
    kinds: Tensor
    factors: Tensor
    keys: Tensor
    steps: Tensor
    mask_rows: Tensor
    rows: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    bitmask: Tensor


def row_settings(settings: SamplerSettings) -> RowSettings:
    """Derive the form that the kernels need from the settings of rows."""
    is_sampled = settings.temperature >= GREEDY_TEMPERATURE
    one = np.float32(1.0)
    factors = np.where(is_sampled, one / np.where(is_sampled, settings.temperature, one), one).astype(np.float32)
    is_filtered = is_sampled & ((settings.top_k > 0) | (settings.top_p < 1) | (settings.min_p > 0))
    kinds = np.where(is_sampled, np.where(is_filtered, FILTERED.value, SAMPLED.value), GREEDY.value).astype(np.int32)
    keys = mix_keys(settings.seeds, settings.choices)
    return RowSettings(kinds, factors, keys, settings.top_k, settings.top_p, settings.min_p)


def stage(settings: SamplerSettings, device: torch.device) -> StagedSettings:
    """Derive the form that the kernels need and copy it to the device, without waiting."""
    return stage_rows(row_settings(settings), settings.steps, settings.mask_rows, device, settings.bitmask)


def stage_rows(
    rows: RowSettings,
    steps: NDArray[np.int64],
    mask_rows: NDArray[np.int32],
    device: torch.device,
    bitmask: NDArray[np.int32] | Tensor | None = None,
) -> StagedSettings:
    """Copy the settings of a step to the device, without waiting.

    Args:
        steps, mask_rows: as in `SamplerSettings`.
        bitmask: int32 [num_masks, ceil(vocab_size / 32)]; a tensor is on the device already.
    """
    filtered = np.flatnonzero(rows.kinds == FILTERED.value).astype(np.int32)
    arrays: list[Any] = [
        rows.kinds,
        rows.factors,
        rows.keys.view(np.int32),
        steps.view(np.int32),
        mask_rows,
        filtered,
        rows.top_k,
        rows.top_p,
        rows.min_p,
    ]
    there: list[Tensor] = [bitmask] if isinstance(bitmask, Tensor) else []
    if not there:
        arrays.append(np.zeros((1, 1), np.int32) if bitmask is None else bitmask)
    there = [*copy_to_device(device, arrays), *there]
    return StagedSettings(len(filtered), bitmask is not None, *there)


def sample(logits: Tensor, settings: SamplerSettings) -> tuple[Tensor, Tensor]:
    """See `ops.sample`; the results stay on the device."""
    check_device(logits.device)
    return sample_staged(logits, stage(settings, logits.device))


def sample_staged(logits: Tensor, staged: StagedSettings) -> tuple[Tensor, Tensor]:
    """`sample` with settings that are already on the device: launches only."""
    device = logits.device
    num_rows, vocab_size = logits.shape
    token_ids = torch.empty(num_rows, dtype=torch.int64, device=device)
    is_finite = torch.empty(num_rows, dtype=torch.int8, device=device)
    if num_rows == 0:
        return token_ids, is_finite.bool()
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    num_chunks = -(-vocab_size // CHUNK)
    # Separate allocations: a kernel is recompiled for pointers of another alignment, which parts of one tensor may have.
    top, score = (torch.empty((num_rows, num_chunks), dtype=torch.float32, device=device) for _ in range(2))
    first, nan = (torch.empty((num_rows, num_chunks), dtype=torch.int32, device=device) for _ in range(2))
    row_top = torch.empty(num_rows, dtype=torch.float32, device=device)
    source = (logits, logits.stride(0), vocab_size)
    masks = (staged.bitmask, staged.mask_rows, staged.bitmask.shape[1])
    chosen = (staged.kinds, staged.factors, staged.keys, staged.steps, *masks)
    chunks = (top, first, score, nan)
    options = {"HAS_MASK": staged.has_mask, "enable_fp_fusion": False}
    sample_stats[(num_chunks, num_rows)](*source, *chosen, *chunks, BLOCK=CHUNK, num_warps=4, **options)
    sample_finish[(num_rows,)](
        *source,
        *chosen,
        *chunks,
        num_chunks,
        token_ids,
        is_finite,
        row_top,
        BLOCK=CHUNK,
        NUM_CHUNKS=power_of_two(num_chunks),
        num_warps=FINISH_WARPS,
        **options,
    )
    if staged.num_filtered:
        _sample_filtered(logits, staged, is_finite, row_top, token_ids)
    return token_ids, is_finite.bool()


def _sample_filtered(
    logits: Tensor, staged: StagedSettings, is_finite: Tensor, row_top: Tensor, token_ids: Tensor
) -> None:
    """Sample rows with filters: among candidates, or over the whole row if there are too many."""
    device, num_rows, vocab_size = logits.device, staged.num_filtered, logits.shape[1]
    num_chunks = -(-vocab_size // CHUNK)
    counts = torch.empty((num_rows, num_chunks, NUM_BINS), dtype=torch.int32, device=device)
    masses = torch.empty((num_rows, num_chunks), dtype=torch.float64, device=device)
    totals = torch.empty(num_rows, dtype=torch.float64, device=device)
    cuts, retained_ks = (torch.empty(num_rows, dtype=torch.int32, device=device) for _ in range(2))
    starts = torch.empty(num_rows * num_chunks + num_rows, dtype=torch.int32, device=device)
    candidates = torch.empty((num_rows, CAPACITY), dtype=torch.int32, device=device)
    source, where = (logits, logits.stride(0), vocab_size), (staged.rows, staged.factors)
    masks = (staged.bitmask, staged.mask_rows, staged.bitmask.shape[1])
    filters = (staged.top_k, staged.top_p, staged.min_p)
    random = (staged.keys, staged.steps)
    grid, exact = (num_chunks, num_rows), {"enable_fp_fusion": False}
    options = {"HAS_MASK": staged.has_mask, **exact}
    filter_histogram[grid](
        *source, *where, *masks, is_finite, row_top, counts, masses, BLOCK=CHUNK, num_warps=4, **options
    )
    filter_cut[(num_rows,)](
        staged.rows,
        *filters,
        is_finite,
        counts,
        masses,
        num_chunks,
        cuts,
        starts,
        totals,
        retained_ks,
        NUM_CHUNKS=power_of_two(num_chunks),
        CAPACITY=CAPACITY,
        num_warps=FILTER_WARPS,
        **exact,
    )
    filter_collect[grid](
        *source,
        *where,
        *masks,
        row_top,
        cuts,
        starts,
        candidates,
        BLOCK=CHUNK,
        CAPACITY=CAPACITY,
        num_warps=4,
        **options,
    )
    filter_choose[(num_rows,)](
        *source[:2],
        *where,
        *random,
        *filters[1:],
        row_top,
        cuts,
        starts,
        totals,
        retained_ks,
        num_chunks,
        candidates,
        token_ids,
        CAPACITY=CAPACITY,
        num_warps=FILTER_WARPS,
        **exact,
    )
    sample_filtered[(num_rows,)](
        *source,
        *where,
        *random,
        *filters,
        *masks,
        is_finite,
        row_top,
        cuts,
        token_ids,
        BLOCK=FILTER_CHUNK,
        num_warps=FILTER_WARPS,
        **options,
    )
