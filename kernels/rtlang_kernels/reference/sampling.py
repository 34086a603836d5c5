"""Reference sampling, in numpy, one row after another. Contracts are in `ops.py`.

Order of the filters: mask, temperature, top-k, top-p on the renormalised top-k set, min-p relative to the likeliest token. Arithmetic that
can affect the token has a fixed order and precision, so that other backends can give the same token bit for bit.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.sampler_settings import GREEDY_TEMPERATURE, SamplerSettings
from rtlang_kernels.reference.noise import exp, gumbel, mix_key, philox


def sample(logits: Tensor, settings: SamplerSettings) -> tuple[Tensor, Tensor]:
    """See `ops.sample`."""
    num_rows, _ = logits.shape
    token_ids = np.zeros(num_rows, dtype=np.int64)
    is_finite = np.zeros(num_rows, dtype=np.bool_)
    for row in range(num_rows):
        x = logits[row].float().cpu().numpy()
        allowed = allowed_tokens(settings, row, len(x))
        candidates = np.flatnonzero(allowed & (x > -np.inf))
        is_finite[row] = len(candidates) > 0 and not np.isnan(x).any() and not np.isposinf(x[candidates]).any()
        if is_finite[row]:
            token_ids[row] = _sample_row(x, candidates, settings, row)
    return torch.from_numpy(token_ids).to(logits.device), torch.from_numpy(is_finite).to(logits.device)


def allowed_tokens(settings: SamplerSettings, row: int, vocab_size: int) -> NDArray[np.bool_]:
    """Tokens that the mask of a row allows: bool [vocab_size]."""
    mask_row = int(settings.mask_rows[row])
    if settings.bitmask is None or mask_row < 0:
        return np.ones(vocab_size, dtype=np.bool_)
    words = np.ascontiguousarray(settings.bitmask[mask_row]).astype("<i4")
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:vocab_size].astype(np.bool_)


def _sample_row(x: NDArray[np.float32], candidates: NDArray[np.int64], settings: SamplerSettings, row: int) -> int:
    """Sample a token for one valid row; `candidates` ascend."""
    temperature = settings.temperature[row]
    if temperature < GREEDY_TEMPERATURE:
        return int(candidates[np.argmax(x[candidates])])
    scaled = x * (np.float32(1.0) / temperature)
    retained = _filtered(scaled, candidates, settings, row)
    key = mix_key(int(settings.seeds[row]), int(settings.choices[row]))
    words = philox(key, int(settings.steps[row]), (len(x) + 3) // 4).reshape(-1)
    scores = scaled[retained] + gumbel(words[retained])
    return int(retained[np.argmax(scores)])  # the lowest id wins a tie


def _filtered(
    scaled: NDArray[np.float32], candidates: NDArray[np.int64], settings: SamplerSettings, row: int
) -> NDArray[np.int64]:
    """Candidates that pass top-k, top-p and min-p, ascending."""
    top_k, top_p, min_p = int(settings.top_k[row]), settings.top_p[row], settings.min_p[row]
    order = candidates[np.argsort(-scaled[candidates], kind="stable")]  # likeliest first, then the lower id
    if 0 < top_k < len(order):
        order = order[:top_k]
    weights = exp(scaled[order] - scaled[order[0]])
    keep = np.ones(len(order), dtype=np.bool_)
    if top_p < 1:
        total = np.cumsum(np.asarray(weights[np.argsort(order)], dtype=np.float64))[-1]  # summed by ascending id
        running = np.cumsum(weights.astype(np.float64))
        keep[1:] = running[:-1] < np.float64(top_p) * total
    keep &= weights >= min_p
    return np.sort(order[keep])


def logprobs(logits: Tensor, token_ids: Tensor, num_top: int) -> tuple[Tensor, Tensor, Tensor]:
    """See `ops.logprobs`."""
    values = torch.log_softmax(logits.float(), dim=-1)
    order = torch.sort(values, dim=-1, descending=True, stable=True)
    chosen = values.gather(1, token_ids[:, None])[:, 0]
    return chosen, order.indices[:, :num_top], order.values[:, :num_top]


def apply_token_mask(logits: Tensor, bitmask: NDArray[np.int32], mask_rows: NDArray[np.int32]) -> None:
    """See `ops.apply_token_mask`."""
    bits = np.unpackbits(np.ascontiguousarray(bitmask).astype("<i4").view(np.uint8), axis=1, bitorder="little")
    allowed = torch.from_numpy(bits[:, : logits.shape[1]].astype(np.bool_)).to(logits.device)
    for row, mask_row in enumerate(mask_rows.tolist()):
        if mask_row >= 0:
            logits[row].masked_fill_(~allowed[mask_row], float("-inf"))


def apply_penalties(
    logits: Tensor,
    prompt_token_ids: NDArray[np.int64],
    output_token_ids: NDArray[np.int64],
    repetition_penalty: float,
    presence_penalty: float,
    frequency_penalty: float,
) -> None:
    """See `ops.apply_penalties`."""
    if repetition_penalty != 1.0:
        seen = torch.from_numpy(np.unique(np.concatenate((prompt_token_ids, output_token_ids)))).to(logits.device)
        values = logits[seen].float()
        logits[seen] = torch.where(values > 0, values / repetition_penalty, values * repetition_penalty).to(
            logits.dtype
        )
    if presence_penalty != 0.0 or frequency_penalty != 0.0:
        unique, counts = np.unique(output_token_ids, return_counts=True)
        ids = torch.from_numpy(unique).to(logits.device)
        penalty = torch.from_numpy(presence_penalty + frequency_penalty * counts).to(logits.device)
        logits[ids] = (logits[ids].double() - penalty).to(logits.dtype)
