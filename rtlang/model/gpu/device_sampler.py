"""Samples tokens on a device without waiting: the asynchronous counterpart of `sampler`.

Processors, penalties, bias, bans and filters are applied to a float32 copy of the step's logits; all rows are then sampled together.
Log-probabilities always refer to the unmodified logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.step import Row, SampledToken
from rtlang.model.filters.truncation import surprise, truncate
from rtlang.model.gpu.accelerator import Accelerator, Fetched
from rtlang.model.gpu.sampler_rows import SamplerRows
from rtlang.model.sampler import (
    Sample,
    bias_arrays,
    disallowed_biases,
    process_logits,
    rule_biases,
)
from rtlang_kernels import ops
from rtlang_kernels.host.transfer import copy_to_device


@dataclass(frozen=True, slots=True)
class DeviceMasks:
    """Masks on the device: int32 [num_masks, words], and for each row of logits the mask it uses (-1: none)."""

    table: Tensor
    rows: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PendingSample:
    """Sampled tokens being copied to the host.

    Attributes:
        token_ids: int64 [num_rows], on the device; 0 where the logits were not finite.
        reported: rows with log-probabilities, and the number of top entries of each.
        errors: those of logits processors, by row.
        surprised: rows with Mirostat.
    """

    token_ids: Tensor
    reported: tuple[tuple[int, int], ...]
    surprised: tuple[int, ...]
    fetched: Fetched
    errors: Mapping[int, ParameterError]

    def wait(self) -> list[Sample]:
        """Wait for the copy; returns the sample of each row."""
        token_ids, is_finite, *found = self.fetched.wait()
        logprob_of: dict[int, TokenLogprob] = {}
        surprise_of = dict(zip(self.surprised, found.pop().tolist(), strict=True)) if self.surprised else {}
        if self.reported:
            sampled = [int(token_ids[row]) for row, _ in self.reported]
            counts = [count for _, count in self.reported]
            found_logprobs = read_logprobs(sampled, counts, *found)
            logprob_of = dict(zip((row for row, _ in self.reported), found_logprobs, strict=True))
        if not self.reported and not self.surprised and is_finite.all():
            return [SampledToken(token_id) for token_id in token_ids.tolist()]
        return [
            SampledToken(token_id, logprob_of.get(row), surprise=surprise_of.get(row)) if good else self.errors.get(row)
            for row, (token_id, good) in enumerate(zip(token_ids.tolist(), is_finite.tolist(), strict=True))
        ]


def uploaded_masks(device: torch.device, rows: Sequence[Row], bitmask: NDArray[np.int32] | None) -> DeviceMasks | None:
    """Masks of the host on the device; None if no row has one.

    Args:
        bitmask: int32 [num_masks, words], indexed by `Row.mask_row`.
    """
    if all(row.mask_row is None for row in rows):
        return None
    assert bitmask is not None
    (table,) = copy_to_device(device, [bitmask])
    return DeviceMasks(table, np.array([-1 if row.mask_row is None else row.mask_row for row in rows], dtype=np.int32))


def launch_sampling(
    accelerator: Accelerator, logits: Tensor, rows: Sequence[Row], masks: DeviceMasks | None, known: SamplerRows
) -> PendingSample:
    """Enqueue sampling of one token per row.

    Args:
        known: settings of requests that were sampled before.
        logits: [len(rows), vocab_size] on the device; not modified.
    """
    from rtlang_kernels.triton.sampling import sampler

    settled = known.settle(rows)
    staged = sampler.stage_rows(
        settled.settings,
        np.fromiter((row.num_output_tokens for row in rows), np.int64, len(rows)),
        np.full(len(rows), -1, dtype=np.int32) if masks is None else masks.rows,
        logits.device,
        None if masks is None else masks.table,
    )
    changed, reported = settled.changed, settled.reported
    errors: dict[int, ParameterError] = {}
    source = _changed_logits(logits, rows, changed, masks, errors) if changed else logits
    token_ids, is_finite = sampler.sample_staged(source, staged)
    results = [token_ids, is_finite]
    if reported:
        part, chosen = logits, token_ids
        if len(reported) < len(rows):
            (where,) = copy_to_device(logits.device, [np.array([index for index, _ in reported], dtype=np.int64)])
            part, chosen = logits.index_select(0, where), token_ids.index_select(0, where)
        widest = min(max(count for _, count in reported), logits.shape[1])
        results += ops.logprobs(part, chosen, widest)
    surprised = tuple(index for index in changed if rows[index].params.mirostat)
    if surprised:
        results.append(torch.stack([surprise(source[index], token_ids[index]) for index in surprised]))
    return PendingSample(token_ids, reported, surprised, accelerator.fetch(results), errors)


def launch_logprobs(
    accelerator: Accelerator, logits: Tensor, token_ids: Sequence[int], num_top: Sequence[int]
) -> Fetched:
    """Enqueue computing the log-probability of token_ids[i] under logits[i]; `read_logprobs` reads the fetched result."""
    (there,) = copy_to_device(logits.device, [np.array(token_ids, dtype=np.int64)])
    return accelerator.fetch(ops.logprobs(logits, there, min(max(num_top), logits.shape[1])))


def read_logprobs(
    token_ids: Sequence[int],
    num_top: Sequence[int],
    chosen: NDArray[np.float32],
    top_ids: NDArray[np.int64],
    top_values: NDArray[np.float32],
) -> list[TokenLogprob]:
    """Convert the results of `ops.logprobs`, with num_top[i] top entries for token i."""
    ids, values = top_ids.tolist(), top_values.tolist()
    return [
        TokenLogprob(token_id, value, tuple(zip(ids[index][:count], values[index][:count], strict=True)))
        for index, (token_id, value, count) in enumerate(zip(token_ids, chosen.tolist(), num_top, strict=True))
    ]


def _changed_logits(
    logits: Tensor,
    rows: Sequence[Row],
    indices: list[int],
    masks: DeviceMasks | None,
    errors: dict[int, ParameterError],
) -> Tensor:
    """A float32 copy with processors, penalties, bias, bans and filters applied to some rows, in this order: [len(rows), vocab_size].

    Penalties, bias, bans and the rules of filters take one copy of small arrays and one launch each, regardless of the number of rows.

    Args:
        errors: receives those of processors, by row.
    """
    from rtlang_kernels.triton.sampling.logits import Penalties, penalize_rows

    changed = logits.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    width = changed.shape[1]
    penalties, banned = [], []
    biases: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
    for index in indices:
        row, params = rows[index], rows[index].params
        if params.logits_processors and (error := process_logits(row, changed[index])) is not None:
            errors[index] = error
        prompt, output = (np.asarray(ids, dtype=np.int64) for ids in (row.prompt_token_ids, row.output_token_ids))
        lowered = params.repetition_penalty, params.presence_penalty, params.frequency_penalty
        if lowered != (1.0, 0.0, 0.0):
            penalties.append(Penalties(index, prompt, output, *lowered))
        if params.logit_bias:
            ids, values = bias_arrays(params.logit_bias, width)
            biases.append((index * width + ids, values))
        if (found := rule_biases(row, width)) is not None:
            biases.append((index * width + found[0], found[1]))
        banned += [index * width + token_id for token_id in row.banned_token_ids if token_id < width]
    penalize_rows(changed, penalties)
    flat = changed.view(-1)
    if biases:
        places, added = zip(*biases, strict=True)
        there, amounts = copy_to_device(logits.device, (np.concatenate(places), np.concatenate(added)))
        flat.index_add_(0, there, amounts)
    if banned:
        (there,) = copy_to_device(logits.device, [np.array(banned, dtype=np.int64)])
        flat.index_fill_(0, there, -torch.inf)
    for index in indices:
        row = rows[index]
        if row.filters is None:
            continue
        if row.filters.allowed_token_ids is not None:
            (there,) = copy_to_device(logits.device, [disallowed_biases(row.filters.allowed_token_ids, width)])
            changed[index].add_(there)
        if row.filters.truncates:
            mask = masks.table[masks.rows[index]] if masks is not None and masks.rows[index] >= 0 else None
            changed[index].copy_(truncate(changed[index], row, mask))
    return changed
