"""CPU sampling: one pass over the logits, with noise only for tokens that can still win. Contracts are in `ops.py`.

`_load_row` masks and scales a row and records the maximum of every 64 tokens. A token beats the best score so far only if its Gumbel
variate exceeds a bound, that is, if its random word is small enough; so the Philox words of 64 tokens are compared as integers, and the two
logarithms are computed only for the few that pass. Groups whose maximum cannot win even with the largest variate are skipped. Rows with
top-k, top-p or min-p sort only the candidates above a cut found by a histogram. The tokens are the same as those of `reference.sampling`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.sampler_settings import GREEDY_TEMPERATURE, SamplerSettings
from rtlang_kernels.cpu.codegen import sampling_vectors as vector
from rtlang_kernels.cpu.codegen.llvm_bridge import as_bits, from_bits
from rtlang_kernels.cpu.codegen.sampling_vectors import BLOCKS, GROUP
from rtlang_kernels.cpu.threads import run_chunks
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference import noise
from rtlang_kernels.reference.noise import BELOW_ONE, LN_2, LOG1M_SPLIT, SQRT_HALF_BITS, TWO_POW_M32

int64: Any = np.int64  # compiled code needs one type per scalar
int32: Any = np.int32
uint64: Any = np.uint64
float32: Any = np.float32
HALF, ONE, ZERO = np.float32(0.5), np.float32(1.0), np.float32(0.0)
LOWEST = np.float32(-np.inf)
L0, L1, L2, L3, L4, L5, L6, L7 = noise.LOG_COEFFICIENTS

SQRT_HALF = np.int32(SQRT_HALF_BITS)
MAX_GUMBEL = 22.2  # the largest variate is 22.181
MAX_WORD = 0xFFFFFFFF
BUCKETS, BUCKETS_PER_NAT = 1024, np.float32(16.0)
SPLIT_NS, NS_PER_LOGIT = 150_000, 2.0  # calls with more work are split over threads


@kernel(is_exact=True)
def _log_core(f: Any, exponent: Any) -> Any:
    series = ((((((L7 * f + L6) * f + L5) * f + L4) * f + L3) * f + L2) * f + L1) * f + L0
    square = f * f
    small = (square * f) * series - HALF * square
    return exponent * LN_2 + (f + small)


@kernel(is_exact=True)
def gumbel(word: Any) -> Any:
    """One Gumbel variate of a 32-bit word (int64), as in `noise.gumbel`."""
    w = min(float32(word | int64(1)) * TWO_POW_M32, BELOW_ONE)
    if w < LOG1M_SPLIT:
        inner = -_log_core(-w, ZERO)
    else:
        bits = as_bits(ONE - w)
        exponent = (bits - SQRT_HALF) >> int32(23)
        inner = -_log_core(from_bits(bits - (exponent << int32(23))) - ONE, float32(exponent))
    bits = as_bits(inner)
    exponent = (bits - SQRT_HALF) >> int32(23)
    return -_log_core(from_bits(bits - (exponent << int32(23))) - ONE, float32(exponent))


@kernel(is_exact=True)
def _load_row(logits: Any, is_bf16: Any, words: Any, factor: Any, size: Any, scaled: Any, peaks: Any) -> Any:
    """Fill `scaled` (float32, whole groups) and `peaks` (one per group). Returns whether a logit is NaN, and the group of the maximum."""
    item = 2 if is_bf16 else 4
    target = int64(scaled.ctypes.data)
    flags = int32(0)
    num_words = size // 32
    everything = int32(-1)
    for i in range(num_words):
        word = words[i] if len(words) else everything
        if is_bf16:
            flags |= vector.masked(logits + 32 * item * i, word, factor, target + 128 * i, 1)
        else:
            flags |= vector.masked(logits + 32 * item * i, word, factor, target + 128 * i, 0)
    for token in range(32 * num_words, len(scaled)):
        value = LOWEST
        if token < size:
            if is_bf16:
                x = vector.element_at(logits + item * token, 1)
            else:
                x = vector.element_at(logits + item * token, 0)
            if x != x:
                flags = int32(1)
            if len(words) == 0 or words[token // 32] >> int32(token % 32) & int32(1):
                value = x * factor
        scaled[token] = value
    best = 0
    for group in range(len(peaks)):
        top = vector.largest(target + 4 * GROUP * group, 16)
        for i in range(16, GROUP, 16):
            top = max(top, vector.largest(target + 4 * (GROUP * group + i), 16))
        peaks[group] = top
        if top > peaks[best]:
            best = group
    return flags != 0, best


@kernel(is_exact=True)
def _sample_group(key: Any, step: Any, group: Any, scaled: Any, peak: Any, best: Any, token: Any, words: Any) -> Any:
    """Return the better of (best, token) and the best score and token of a group."""
    if peak == LOWEST or peak + MAX_GUMBEL < best:
        return best, token
    # only variates over best - peak can win; -log(-log(1 - w)) > d needs w < exp(-d), and rounding is far below the margin
    reach = math.exp(min(max(float(peak) - float(best), -40.0), 1.0)) * 1.0001 * 4294967296.0 + 16.0
    limit = int64(min(reach, 4294967295.0))
    bits = vector.noise_below(key, step, int64(group) * BLOCKS, limit, int64(words.ctypes.data))
    if bits != 0:
        for i in range(GROUP):
            if (bits >> int64(i)) & int64(1):
                candidate = group * GROUP + 4 * (i % BLOCKS) + i // BLOCKS
                score = scaled[candidate] + gumbel(int64(words[i]))
                if score > best or (score == best and candidate < token):
                    best, token = score, candidate
    return best, token


@kernel(is_exact=True)
def _sample_rows(
    logits: Any,
    stride: Any,
    is_bf16: Any,
    size: Any,
    rows: Any,
    factors: Any,
    keys: Any,
    steps: Any,
    bitmask: Any,
    mask_rows: Any,
    token_ids: Any,
    is_finite: Any,
    scaled: Any,
    peaks: Any,
    random: Any,
) -> None:
    """Sample rows without filters; a factor of 0 means greedy."""
    unmasked = np.empty(0, np.int32)
    for row in rows:
        words = bitmask[mask_rows[row]] if mask_rows[row] >= 0 else unmasked
        is_greedy = factors[row] == ZERO
        factor = ONE if is_greedy else factors[row]
        has_nan, top = _load_row(logits + row * stride, is_bf16, words, factor, size, scaled, peaks)
        token_ids[row] = 0
        is_finite[row] = not has_nan and peaks[top] > LOWEST and peaks[top] < -LOWEST
        if not is_finite[row]:
            continue
        if is_greedy:
            token = top * GROUP
            while scaled[token] != peaks[top]:
                token += 1
            token_ids[row] = token
            continue
        best, token = _sample_group(keys[row], steps[row], top, scaled, peaks[top], LOWEST, int64(size), random)
        for group in range(len(peaks)):
            if group != top:
                best, token = _sample_group(keys[row], steps[row], group, scaled, peaks[group], best, token, random)
        token_ids[row] = token


@kernel(is_exact=True)
def _candidates(scaled: Any, size: Any, top: Any, top_k: Any, top_p: Any, weights: Any, keys: Any) -> Any:
    """Sort keys of the tokens that may pass top-k or top-p: uint64 that ascend with falling score, then with the id.

    Fills `weights` with exp(scaled - top). Returns the number of keys and the sum of weights by ascending id (float64).
    """
    for i in range(0, len(scaled), 16):
        vector.exponentials(int64(scaled.ctypes.data) + 4 * i, top, int64(weights.ctypes.data) + 4 * i)
    count = np.zeros(BUCKETS, np.int64)
    mass = np.zeros(BUCKETS, np.float64)
    total = 0.0
    for token in range(size):
        if scaled[token] > LOWEST:
            bucket = int64(min((top - scaled[token]) * BUCKETS_PER_NAT, float32(BUCKETS - 1)))
            count[bucket] += 1
            mass[bucket] += weights[token]
            total += float(weights[token])
    last = BUCKETS - 1
    if top_k > 0:
        last, seen = 0, count[0]
        while last < BUCKETS - 1 and seen < top_k:
            last += 1
            seen += count[last]
    elif top_p < ONE:
        last, reached = 0, mass[0]
        while last < BUCKETS - 1 and reached <= float(top_p) * total * (1.0 + 1e-9):
            last += 1
            reached += mass[last]
    found = 0
    for token in range(size):
        if scaled[token] > LOWEST:
            bucket = int64(min((top - scaled[token]) * BUCKETS_PER_NAT, float32(BUCKETS - 1)))
            if bucket <= last:
                bits = as_bits(scaled[token] + ZERO)  # -0 becomes 0
                order = (
                    int64(bits) if bits < 0 else int64(0x7FFFFFFF) - int64(bits)
                )  # as unsigned 32 bits, it ascends with falling score
                keys[found] = (uint64(order & int64(MAX_WORD)) << uint64(32)) | uint64(token)
                found += 1
    return found, total


@kernel(is_exact=True)
def _sample_retained(
    ids: Any,
    scaled: Any,
    weights: Any,
    total: Any,
    top_p: Any,
    min_p: Any,
    key: Any,
    step: Any,
    retained: Any,
    peaks: Any,
    random: Any,
) -> Any:
    """Apply top-p to tokens in order of falling weight, and min-p to each, and sample among the retained ones, written to `retained`."""
    retained[:] = LOWEST
    peaks[:] = LOWEST
    running, top = 0.0, int64(ids[0]) // GROUP
    for i in range(len(ids)):
        candidate = int64(ids[i])
        if top_p < ONE and i > 0 and running >= float(top_p) * total:
            break
        running += float(weights[candidate])
        if weights[candidate] >= min_p:
            group = candidate // GROUP
            retained[candidate] = scaled[candidate]
            peaks[group] = max(peaks[group], scaled[candidate])
            if peaks[group] > peaks[top]:
                top = group
    best, token = _sample_group(key, step, top, retained, peaks[top], LOWEST, int64(len(scaled)), random)
    for group in range(len(peaks)):
        if group != top:
            best, token = _sample_group(key, step, group, retained, peaks[group], best, token, random)
    return token


def sample(logits: Tensor, settings: SamplerSettings) -> tuple[Tensor, Tensor]:
    """See `ops.sample`."""
    num_rows, size = logits.shape
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    token_ids, is_finite = np.zeros(num_rows, np.int64), np.zeros(num_rows, np.bool_)
    is_sampled = settings.temperature >= GREEDY_TEMPERATURE
    factors = np.where(is_sampled, ONE / np.where(is_sampled, settings.temperature, ONE), ZERO).astype(np.float32)
    noise_keys = np.zeros(num_rows, np.uint64)
    for row in np.flatnonzero(is_sampled).tolist():
        noise_keys[row] = noise.mix_key(int(settings.seeds[row]), int(settings.choices[row]))
    keys = noise_keys.view(np.int64)
    bitmask = np.empty((0, 0), np.int32) if settings.bitmask is None else settings.bitmask
    is_filtered = is_sampled & ((settings.top_k > 0) | (settings.top_p < 1) | (settings.min_p > 0))
    item = logits.element_size()
    source = (logits.data_ptr(), logits.stride(0) * item, int(item == 2), size)
    rows = np.flatnonzero(~is_filtered)
    if len(rows):
        split = torch.get_num_threads() if len(rows) * size * NS_PER_LOGIT > SPLIT_NS else 1
        chunks: list[tuple[object, ...]] = [
            (
                *source,
                part,
                factors,
                keys,
                settings.steps,
                bitmask,
                settings.mask_rows,
                token_ids,
                is_finite,
                *_buffers(size),
            )
            for part in np.array_split(rows, min(split, len(rows)))
        ]
        run_chunks(_sample_rows, chunks)
    if is_filtered.any():
        _filtered_rows(source, np.flatnonzero(is_filtered), settings, factors, keys, bitmask, token_ids, is_finite)
    return torch.from_numpy(token_ids), torch.from_numpy(is_finite)


def logprobs(logits: Tensor, token_ids: Tensor, num_top: int) -> tuple[Tensor, Tensor, Tensor]:
    """See `ops.logprobs`. Sorts only the tokens that are at least as likely as the last of the likeliest."""
    values = torch.log_softmax(logits.float(), dim=-1)
    chosen = values.gather(1, token_ids[:, None])[:, 0]
    top_ids = torch.empty((len(values), num_top), dtype=torch.int64)
    top_values = torch.empty((len(values), num_top), dtype=torch.float32)
    if num_top:
        least = values.topk(num_top, dim=-1).values[:, -1:]
        for row, is_candidate in enumerate(values >= least):
            candidates = is_candidate.nonzero()[:, 0]  # the lower id first
            order = torch.sort(values[row, candidates], descending=True, stable=True)
            top_ids[row], top_values[row] = candidates[order.indices[:num_top]], order.values[:num_top]
    return chosen, top_ids, top_values


def _buffers(size: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.uint32]]:
    """Working memory of one thread: scaled logits, their maxima by group, random words of one group."""
    num_groups = (size + GROUP - 1) // GROUP
    return np.empty(num_groups * GROUP, np.float32), np.empty(num_groups, np.float32), np.empty(GROUP, np.uint32)


def _filtered_rows(
    source: tuple[int, int, int, int],
    rows: NDArray[np.int64],
    settings: SamplerSettings,
    factors: NDArray[np.float32],
    keys: NDArray[np.int64],
    bitmask: NDArray[np.int32],
    token_ids: NDArray[np.int64],
    is_finite: NDArray[np.bool_],
) -> None:
    """Sample rows with top-k, top-p or min-p: cut by histogram, sort the candidates, sample."""
    address, stride, is_bf16, size = source
    scaled, peaks, random = _buffers(size)
    retained, weights, order = np.empty_like(scaled), np.empty_like(scaled), np.empty(size, np.uint64)
    unmasked = np.empty(0, np.int32)
    for row in rows.tolist():
        mask_row = int(settings.mask_rows[row])
        words = bitmask[mask_row] if mask_row >= 0 else unmasked
        has_nan, group = _load_row(address + row * stride, is_bf16, words, factors[row], size, scaled, peaks)
        top = peaks[group]
        is_finite[row] = not has_nan and bool(np.isfinite(top))
        if not is_finite[row]:
            continue
        top_k, top_p, min_p = int(settings.top_k[row]), settings.top_p[row], settings.min_p[row]
        found, total = _candidates(scaled, size, top, top_k, top_p, weights, order)
        chosen = order[:found]
        if top_k > 0 or top_p < 1:
            chosen.sort()
        ids = (chosen & np.uint64(MAX_WORD)).view(np.int64)
        if 0 < top_k < found:
            ids = ids[:top_k]
        if top_k > 0:
            total = float(np.cumsum(weights[np.sort(ids)], dtype=np.float64)[-1])
        noise_key = keys[row], settings.steps[row]
        token_ids[row] = _sample_retained(
            ids, scaled, weights, total, top_p, min_p, *noise_key, retained, peaks, random
        )
