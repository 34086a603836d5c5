"""Excludes tokens by the shape of their distribution: top-n-sigma, typical-p, XTC, Mirostat, and a temperature that follows the entropy.

A row that asks for one of these has all its filters applied here, in a fixed order, each to the tokens that the ones before it left:
temperature, top-n-sigma, top-k, typical-p, top-p, min-p, XTC, Mirostat. The sampler then samples from the result as it is. Everything is
a function of the row alone (its logits, mask, parameters and noise key), computed in float64, so it depends on no neighbor. No operation
waits for a device.

Sources: Tang et al. 2024 (top-n-sigma); Meister et al. 2023 (typical-p); p-e-w 2024 (XTC, text-generation-webui, pull request 6335);
Basu et al. 2021 (Mirostat 2.0), with the surprise among the tokens that are left, as in llama.cpp; kalomaze 2023 (dynamic temperature).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rtlang.contract.params import SamplingParams
from rtlang.contract.step import Row
from rtlang_kernels.contract.sampler_settings import GREEDY_TEMPERATURE
from rtlang_kernels.reference.noise import MASK_64, mix_key, philox

AS_IS = SamplingParams(temperature=1.0)
"""The parameters with which the result is sampled."""
_XTC_STREAM = 0x5854435F6E6F6973  # makes the noise of XTC another one than that of the token


def is_truncated(params: SamplingParams) -> bool:
    """Whether the parameters have a filter of this module; at temperature 0, where one token is certain, none has an effect."""
    return params.temperature >= float(GREEDY_TEMPERATURE) and bool(
        params.typical_p < 1 or params.top_n_sigma or params.xtc_probability or params.mirostat or params.dynatemp_range
    )


def truncate(logits: Tensor, row: Row, mask: Tensor | None) -> Tensor:
    """The logits of a row, divided by its temperature, and -inf for excluded tokens.

    Args:
        logits: [vocab_size] float32; not modified.
        row: with the noise key of this token.
        mask: int32 [ceil(vocab_size / 32)], the row of the bitmask; None if all tokens are allowed.
    Returns:
        [vocab_size] float32. At least one token is left if one was allowed; all are NaN if one is NaN, or an allowed one +inf.
    """
    params, left = row.params, logits.double()
    if mask is not None:
        left = _excluded(left, ~_unpacked(mask, len(logits)))
    is_finite = ~logits.isnan().any() & (left.max() < torch.inf)
    left = left / _temperature(left, row)
    if params.top_n_sigma:
        left = _excluded(left, left < left.max() - params.top_n_sigma * _deviation(left))
    if 0 < params.top_k < len(left):
        order = torch.sort(left, descending=True, stable=True).indices
        left = _excluded(left, torch.ones_like(left, dtype=torch.bool).index_fill_(0, order[: params.top_k], False))
    if params.typical_p < 1:
        left = _excluded(left, ~_typical(left, params.typical_p))
    if params.top_p < 1:
        left = _excluded(left, ~_nucleus(left, params.top_p))
    if params.min_p:
        left = _excluded(left, (left - left.max()).exp() < params.min_p)
    if params.xtc_probability and _chance(row) < params.xtc_probability:
        left = _excluded(left, _top_choices(left, params.xtc_threshold))
    if params.mirostat:
        too_surprising = -torch.log_softmax(left, 0) > row.max_surprise * math.log(2.0)
        left = _excluded(left, too_surprising & (torch.arange(len(left), device=left.device) != left.argmax()))
    return left.masked_fill(~is_finite, torch.nan).float()


def surprise(truncated: Tensor, token_id: Tensor | int) -> Tensor:
    """-log2 of the probability of a token under the result of `truncate`: a scalar, float64."""
    chosen = torch.as_tensor(token_id, device=truncated.device).reshape(1)
    return torch.log_softmax(truncated.double(), 0).index_select(0, chosen)[0] / -math.log(2.0)


def _excluded(logits: Tensor, is_excluded: Tensor) -> Tensor:
    return logits.masked_fill(is_excluded, -torch.inf)


def _unpacked(mask: Tensor, vocab_size: int) -> Tensor:
    """The tokens that a row of a bitmask allows: bool [vocab_size]."""
    bits = mask[:, None] >> torch.arange(32, dtype=torch.int32, device=mask.device)
    return (bits & 1).reshape(-1)[:vocab_size].bool()


def _temperature(logits: Tensor, row: Row) -> Tensor | float:
    params = row.params
    if not params.dynatemp_range:
        return max(row.temperature, float(GREEDY_TEMPERATURE))
    low = max(0.0, row.temperature - params.dynatemp_range)
    high = row.temperature + params.dynatemp_range
    logprobs = torch.log_softmax(logits, 0)
    entropy = -(logprobs.exp() * logprobs).nan_to_num(0.0).sum()
    highest = (logits > -torch.inf).sum().clamp(min=2).double().log()
    share = (entropy / highest).clamp(min=0.0)
    temperature: Tensor = low + (high - low) * share**params.dynatemp_exponent
    return temperature.clamp(min=float(GREEDY_TEMPERATURE))


def _deviation(logits: Tensor) -> Tensor:
    """The standard deviation of the logits of the tokens that are left."""
    is_left = logits > -torch.inf
    values, num_left = logits.masked_fill(~is_left, 0.0), is_left.sum()
    mean = values.sum() / num_left
    return (((values - mean) ** 2).masked_fill(~is_left, 0.0).sum() / num_left).sqrt()


def _typical(logits: Tensor, mass: float) -> Tensor:
    logprobs = torch.log_softmax(logits, 0)
    entropy = -(logprobs.exp() * logprobs).nan_to_num(0.0).sum()
    distances, order = torch.sort((logprobs + entropy).abs(), stable=True)
    num_below = (logprobs.exp()[order].cumsum(0) < mass).sum()
    farthest = distances.index_select(0, num_below.clamp(max=len(logits) - 1).reshape(1))
    return (logprobs + entropy).abs() <= farthest


def _nucleus(logits: Tensor, mass: float) -> Tensor:
    probabilities, order = torch.sort(torch.softmax(logits, 0), descending=True, stable=True)
    is_kept = probabilities.cumsum(0) - probabilities < mass
    is_kept[0] = True
    return torch.empty_like(is_kept).index_copy_(0, order, is_kept)


def _top_choices(logits: Tensor, threshold: float) -> Tensor:
    """The tokens at least as likely as the threshold, but for the least likely of them (of several, the one with the highest id)."""
    probabilities = torch.softmax(logits, 0)
    is_top = probabilities >= threshold
    lowest = probabilities.masked_fill(~is_top, torch.inf).min()
    ids = torch.arange(len(logits), device=logits.device)
    spared = ids.masked_fill(~is_top | (probabilities != lowest), -1).max()
    return is_top & (ids != spared)


def _chance(row: Row) -> float:
    """A number of [0, 1) that the row's noise key determines."""
    key = mix_key((row.seed ^ _XTC_STREAM) & MASK_64, row.choice)
    return float(philox(key, row.num_output_tokens, 1)[0, 0]) * 2.0**-32
