"""Samples tokens from logits: processors, penalties, bias, bans, masks, log-probabilities, and scores of given tokens.

Rows without processor, penalty, bias, ban or filter are sampled from the model's logits in one fused pass. The logits of other rows are
copied to float32, modified, and sampled the same way. Log-probabilities always refer to the unmodified logits. A row whose logits are not
finite is reported as such and does not affect other rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang.contract.errors import ParameterError
from rtlang.contract.events import TokenLogprob
from rtlang.contract.step import Row, SampledRow, SampledToken
from rtlang.model.filters.truncation import AS_IS, surprise, truncate
from rtlang_kernels import ops

Sample = SampledToken | ParameterError | None
"""A sampled token, or the error of a logits processor; None if the logits were not finite."""


def sampled_rows(rows: Sequence[Row]) -> list[Row]:
    """A row for each token that a step samples, with the noise key, mask, bans and history of that token."""
    if not any(row.num_draft_tokens for row in rows):
        return [row for row in rows if row.needs_sample]
    return [row.sampled_after(index) for row in rows for index in range(row.num_sampled)]


def gather_samples(rows: Sequence[Row], samples: Sequence[Sample]) -> list[SampledRow]:
    """The results of a step's rows, of one sample for each row of `sampled_rows`."""
    outputs: list[SampledRow] = []
    start = 0
    for row in rows:
        if row.needs_sample and not row.num_draft_tokens and type(sample := samples[start]) is SampledToken:
            outputs.append(SampledRow((sample,)))
            start += 1
            continue
        own = samples[start : start + row.num_sampled]
        start += len(own)
        tokens: list[SampledToken] = []
        for sample in own:
            if not isinstance(sample, SampledToken):
                break
            tokens.append(sample)
        first = own[0] if own else None
        error = first if isinstance(first, ParameterError) else None
        outputs.append(SampledRow(tuple(tokens), (), not own or bool(tokens), error))
    return outputs


def sample_tokens(logits: Tensor, rows: Sequence[Row], bitmask: NDArray[np.int32] | None) -> list[Sample]:
    """Sample one token per row.

    Args:
        logits: [len(rows), vocab_size] float32 or bfloat16; not modified.
        rows: one per row of logits, without drafts; see `sampled_rows`.
        bitmask: int32 [M, ceil(vocab_size / 32)], indexed by `Row.mask_row`; None if no row has a mask.
    Raises:
        ValueError: a mask row is out of range.
    """
    changed = [index for index, row in enumerate(rows) if changes_logits(row)]
    errors: dict[int, ParameterError] = {}
    surprises: dict[int, float] = {}
    if not changed:
        token_ids, is_finite = _sample(logits, rows, bitmask)
    else:
        plain = [index for index in range(len(rows)) if index not in set(changed)]
        token_ids, is_finite = [0] * len(rows), [True] * len(rows)
        changed_logits = _changed_logits(logits, rows, changed, bitmask, errors)
        for indices, part in ((plain, logits[plain]), (changed, changed_logits)):
            if indices:
                sampled, finite = _sample(part, [sampled_from(rows[index]) for index in indices], bitmask)
                for index, token_id, good in zip(indices, sampled, finite, strict=True):
                    token_ids[index], is_finite[index] = token_id, good
        for line, index in zip(changed_logits, changed, strict=True):
            if rows[index].params.mirostat and is_finite[index]:
                surprises[index] = float(surprise(line, token_ids[index]))
    reported = [index for index, row in enumerate(rows) if row.params.logprobs is not None and is_finite[index]]
    logprob_of: dict[int, TokenLogprob] = {}
    if reported:
        num_top = [rows[index].params.logprobs or 0 for index in reported]
        part = logits if len(reported) == len(rows) else logits[reported]
        found = token_logprobs(part, [token_ids[index] for index in reported], num_top)
        logprob_of = dict(zip(reported, found, strict=True))
    return [
        SampledToken(
            token_ids[index],
            logprob_of.get(index),
            distortion(logits[index], row, bitmask) if row.params.distortion else None,
            surprises.get(index),
        )
        if is_finite[index]
        else errors.get(index)
        for index, row in enumerate(rows)
    ]


def distortion(logits: Tensor, row: Row, bitmask: NDArray[np.int32] | None) -> float:
    """-log of the probability of all tokens that the row's mask allows, in nats, under the unmodified logits, [vocab_size]."""
    if row.mask_row is None or bitmask is None:
        return 0.0
    bits = np.unpackbits(bitmask[row.mask_row].view(np.uint8), bitorder="little")
    allowed = torch.from_numpy(bits[: len(logits)].astype(np.bool_))
    exact = logits.double()
    return max(0.0, float(exact.logsumexp(0) - exact[allowed].logsumexp(0)))


def token_logprobs(logits: Tensor, token_ids: Sequence[int], num_top: Sequence[int]) -> list[TokenLogprob]:
    """Natural log-probability of token_ids[i] under logits[i], with the num_top[i] most likely tokens.

    Args:
        logits: [len(token_ids), vocab_size] float32 or bfloat16; not modified.
    """
    widest = min(max(num_top, default=0), logits.shape[1])
    chosen, top_ids, top_values = ops.logprobs(logits, torch.tensor(token_ids, dtype=torch.int64), widest)
    ids, values = top_ids.tolist(), top_values.tolist()
    return [
        TokenLogprob(token_id, value, tuple(zip(ids[index][:count], values[index][:count], strict=True)))
        for index, (token_id, value, count) in enumerate(zip(token_ids, chosen.tolist(), num_top, strict=True))
    ]


def changes_logits(row: Row) -> bool:
    """Whether the row's tokens are sampled from modified logits."""
    params = row.params
    return bool(
        row.banned_token_ids
        or params.logits_processors
        or row.filters is not None
        or params.logit_bias
        or params.repetition_penalty != 1.0
        or params.presence_penalty
        or params.frequency_penalty
    )


def sampled_from(row: Row) -> Row:
    """The row with the parameters with which its modified logits are sampled."""
    return row._replace(params=AS_IS, temperatures=()) if row.filters is not None and row.filters.truncates else row


def rule_biases(row: Row, vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
    """The tokens and values of the biases of the row's rules, as `bias_arrays`; None for no bias."""
    if row.filters is None:
        return None
    pairs = [pair for rule in row.filters.rules for pair in rule.biases(row.output_token_ids).items()]
    return _arrays(pairs, vocab_size) if pairs else None


@functools.lru_cache(maxsize=64)
def disallowed_biases(allowed_token_ids: tuple[int, ...], vocab_size: int) -> NDArray[np.float32]:
    """-inf for all tokens but these, which have 0: [vocab_size]. Do not modify."""
    biases = np.full(vocab_size, -np.inf, dtype=np.float32)
    biases[[token_id for token_id in allowed_token_ids if token_id < vocab_size]] = 0.0
    return biases


@functools.lru_cache(maxsize=1024)
def bias_arrays(
    logit_bias: tuple[tuple[int, float], ...], vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The tokens and values of a bias, without tokens that the logits do not have; cached, since every step adds them. Do not modify."""
    return _arrays(logit_bias, vocab_size)


def _arrays(pairs: Sequence[tuple[int, float]], vocab_size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    known = [pair for pair in pairs if pair[0] < vocab_size]
    ids, values = zip(*known, strict=True) if known else ((), ())
    return np.array(ids, dtype=np.int64), np.array(values, dtype=np.float32)


def process_logits(row: Row, line: Tensor) -> ParameterError | None:
    """Let the processors of a row replace its logits, float32 [vocab_size], in place.

    Returns:
        The error of a processor that raises or returns something else; then the logits are NaN, so that nothing is sampled.
    """
    for processor in row.params.logits_processors:
        try:
            found = processor(list(row.output_token_ids), line)
            if not isinstance(found, Tensor) or found.shape != line.shape:
                shown = f"shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
                raise TypeError(f"it returned {shown}, expected the logits, a tensor of shape {list(line.shape)}")
            if found is not line:
                line.copy_(found)
        except Exception as cause:  # of a function of the user
            line.fill_(torch.nan)
            error = ParameterError("logits_processors", processor, f"{type(cause).__name__}: {cause}")
            error.__cause__ = cause
            return error
    return None


def _changed_logits(
    logits: Tensor,
    rows: Sequence[Row],
    indices: list[int],
    bitmask: NDArray[np.int32] | None,
    errors: dict[int, ParameterError],
) -> Tensor:
    """float32 copies of some rows with processors, penalties, bias, bans and filters applied, in this order: [len(indices), vocab_size].

    Args:
        errors: receives those of processors, by row.
    """
    changed = logits[indices].float()
    for line, index in zip(changed, indices, strict=True):
        row, params = rows[index], rows[index].params
        if params.logits_processors and (error := process_logits(row, line)) is not None:
            errors[index] = error
        ops.apply_penalties(
            line,
            prompt_token_ids=row.prompt_token_ids,
            output_token_ids=row.output_token_ids,
            repetition_penalty=params.repetition_penalty,
            presence_penalty=params.presence_penalty,
            frequency_penalty=params.frequency_penalty,
        )
        if params.logit_bias:
            ids, values = bias_arrays(params.logit_bias, len(line))
            line.index_add_(0, torch.from_numpy(ids), torch.from_numpy(values))
        banned = [token_id for token_id in row.banned_token_ids if token_id < len(line)]
        if banned:
            line[banned] = -torch.inf
        if row.filters is None:
            continue
        if (found := rule_biases(row, len(line))) is not None:
            line.index_add_(0, *map(torch.from_numpy, found))
        if row.filters.allowed_token_ids is not None:
            line.add_(torch.from_numpy(disallowed_biases(row.filters.allowed_token_ids, len(line))))
        if row.filters.truncates:
            is_masked = row.mask_row is not None and bitmask is not None and row.mask_row < len(bitmask)
            mask = torch.from_numpy(bitmask[row.mask_row]) if is_masked and bitmask is not None else None
            line.copy_(truncate(line, row, mask))
    return changed


def _sample(logits: Tensor, rows: Sequence[Row], bitmask: NDArray[np.int32] | None) -> tuple[list[int], list[bool]]:
    settings = [
        (
            row.temperature,
            row.params.top_k,
            row.params.top_p,
            row.params.min_p,
            row.seed,
            row.choice,
            row.num_output_tokens,
            -1 if row.mask_row is None else row.mask_row,
        )
        for row in rows
    ]
    temperature, top_k, top_p, min_p, seeds, choices, steps, mask_rows = zip(*settings, strict=True)
    is_masked = max(mask_rows) >= 0
    if is_masked and (bitmask is None or max(mask_rows) >= len(bitmask)):
        raise ValueError(f"mask_row = {max(mask_rows)}: the bitmask has {0 if bitmask is None else len(bitmask)} rows")
    token_ids, is_finite = ops.sample(
        logits,
        temperature=np.array(temperature, dtype=np.float32),
        top_k=np.array(top_k, dtype=np.int64),
        top_p=np.array(top_p, dtype=np.float32),
        min_p=np.array(min_p, dtype=np.float32),
        seeds=np.array(seeds, dtype=np.uint64),
        choices=np.array(choices, dtype=np.int32),
        steps=np.array(steps, dtype=np.int64),
        bitmask=bitmask if is_masked else None,
        mask_rows=np.array(mask_rows, dtype=np.int32) if is_masked else None,
    )
    return token_ids.tolist(), is_finite.tolist()
