"""Sampling under top-k, top-p and min-p without sorting the vocabulary, for any number of retained tokens.

This is for rows whose filters may retain more tokens than `candidates_kernel` can hold.

In the order "likelier first, then the lower id" the tokens that top-k and top-p retain are a prefix. The token with the best score
is found among all candidates; if too many tokens, or too much weight, precede it in the order, it is not retained, and neither is
any token after it: the search is repeated among the tokens before it. The result is the best score within the prefix, as in the
reference. With top-k, the k-th largest logit is first found exactly by four counts of eight bits, which bounds the candidates and
gives the weight of the top-k set. min-p is a bound on each token's own weight. One program owns a row and reads it a few times,
from L2.

Weights are the reference's float32 exponentials. Sums are float64, in an order other than the reference's, so a token may differ if the
weight before it equals top_p of the whole to within 1e-12.

Source: the rejection with pivots follows Ye et al. 2025 (FlashInfer, sorting-free sampling), made deterministic with Gumbel noise.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit
from rtlang_kernels.triton.sampling import noise_kernel as noise
from rtlang_kernels.triton.sampling.sample_kernel import NO_TOKEN, masked_chunk

LOWEST_KEY = tl.constexpr(-0x80000000)


@jit
def order_key(scaled: tl.tensor) -> tl.tensor:
    """An int32 that ascends with the float32; -0 equals 0."""
    bits = (scaled + 0.0).to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@jit
def sum_2d(x: tl.tensor) -> tl.tensor:
    """The sum of all elements of [n, m]."""
    return tl.sum(tl.sum(x, axis=1), axis=0)


@jit
def max_2d(x: tl.tensor) -> tl.tensor:
    """The maximum of all elements of [n, m]."""
    return tl.max(tl.max(x, axis=1), axis=0)


@jit
def _kth_key(
    line: tl.tensor,
    factor: tl.tensor,
    bitmask: tl.tensor,
    mask_row: tl.tensor,
    num_words: tl.tensor,
    vocab_size: tl.tensor,
    top_k: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Key of the top_k-th likeliest token, and how many tokens with this key are among the first top_k.

    LOWEST_KEY if there are at most top_k tokens.
    """
    digits = tl.arange(0, 256)
    prefix, left, found = 0, top_k, 1
    for digit in range(4):
        shift = 24 - 8 * digit
        counts = tl.zeros([256], tl.int32)
        for chunk in range(tl.cdiv(vocab_size, BLOCK)):
            x, _, _ = masked_chunk(line, bitmask, mask_row, num_words, chunk, vocab_size, BLOCK, HAS_MASK)
            key = order_key(x * factor)
            bits = (key ^ LOWEST_KEY).to(tl.uint32, bitcast=True)  # ascends as an unsigned integer
            above = ((bits >> shift) >> 8).to(tl.int32)  # digits found so far
            is_candidate = (x > float("-inf")) & (above == prefix)
            value = ((bits >> shift) & 255).to(tl.int32)
            counts += tl.histogram(value.reshape(BLOCK), 256, mask=is_candidate.reshape(BLOCK))
        at_least = tl.sum(counts) - tl.cumsum(counts) + counts  # candidates with this digit or a larger one
        if (digit == 0) & (tl.max(at_least) <= left):
            found = 0
        place = tl.maximum(tl.max(tl.where(at_least >= left, digits, -1)), 0)
        left -= tl.sum(tl.where(digits > place, counts, 0))
        prefix = (prefix << 8) | place
    return tl.where(found == 0, LOWEST_KEY, prefix ^ LOWEST_KEY), tl.where(found == 0, NO_TOKEN, left)


@jit
def sample_filtered(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    rows: tl.tensor,
    factors: tl.tensor,
    keys: tl.tensor,
    steps: tl.tensor,
    top_ks: tl.tensor,
    top_ps: tl.tensor,
    min_ps: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    is_finite: tl.tensor,
    row_top: tl.tensor,
    cuts: tl.tensor,
    token_ids: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> None:
    """Sample one row of those listed in `rows`. Grid: (len(rows),). Invalid rows keep the result of `sample_finish`.

    Rows with a cut (not -1) were sampled among candidates.
    """
    row = tl.load(rows + tl.program_id(0))
    if (tl.load(is_finite + row) == 0) | (tl.load(cuts + tl.program_id(0)) >= 0):
        return
    factor, top, mask_row = tl.load(factors + row), tl.load(row_top + row), tl.load(mask_rows + row)
    top_k, top_p, min_p = tl.load(top_ks + row), tl.load(top_ps + row), tl.load(min_ps + row)
    key_0, key_1 = tl.load(keys + 2 * row), tl.load(keys + 2 * row + 1)
    step_0, step_1 = tl.load(steps + 2 * row), tl.load(steps + 2 * row + 1)
    line = logits + row.to(tl.int64) * row_stride
    num_chunks = tl.cdiv(vocab_size, BLOCK)

    # tokens below the cut are rejected; of those at the cut, the first num_ties are retained
    cut, num_ties = LOWEST_KEY, NO_TOKEN
    if top_k > 0:
        cut, num_ties = _kth_key(line, factor, bitmask, mask_row, num_words, vocab_size, top_k, BLOCK, HAS_MASK)
    limit = tl.full([], float("inf"), tl.float64)  # weight that may precede a retained token
    if top_p < 1.0:
        mass = tl.zeros([], tl.float64)
        tie_weight = tl.zeros([], tl.float64)
        for chunk in range(num_chunks):
            x, _, _ = masked_chunk(line, bitmask, mask_row, num_words, chunk, vocab_size, BLOCK, HAS_MASK)
            scaled = x * factor
            key = order_key(scaled)
            weight = tl.where(x > float("-inf"), noise.exponential(scaled - top), 0.0).to(tl.float64)
            mass += sum_2d(tl.where(key > cut, weight, 0.0))
            tie_weight = tl.maximum(tie_weight, max_2d(tl.where(key == cut, weight, 0.0)))
        if cut > LOWEST_KEY:
            mass += tie_weight * num_ties.to(tl.float64)
        limit = top_p.to(tl.float64) * mass

    pivot_key, pivot_token = LOWEST_KEY, NO_TOKEN  # all tokens precede the first pivot
    token = NO_TOKEN
    is_done = 0
    while is_done == 0:
        # One pass: weight and count before the pivot, and the best score there, which is the next pivot.
        num_before = tl.zeros([], tl.int32)
        mass_before = tl.zeros([], tl.float64)
        best, best_token, best_key = float("-inf"), NO_TOKEN, LOWEST_KEY
        for chunk in range(num_chunks):
            x, ids, _ = masked_chunk(line, bitmask, mask_row, num_words, chunk, vocab_size, BLOCK, HAS_MASK)
            scaled = x * factor
            key = order_key(scaled)
            is_before = (x > float("-inf")) & (key >= cut)
            is_before = is_before & ((key > pivot_key) | ((key == pivot_key) & (ids < pivot_token)))
            # Count in float32, exact up to 2^24: some versions of LLVM sum predicates through local memory.
            count = sum_2d(tl.where(is_before, 1.0, 0.0)).to(tl.int32)
            if count > 0:
                weight = noise.exponential(scaled - top)
                num_before += count
                mass_before += sum_2d(tl.where(is_before, weight, 0.0).to(tl.float64))
                random = noise.words(key_0, key_1, step_0, step_1, chunk * (BLOCK // 4), BLOCK // 4)
                score = scaled + noise.gumbel(random.reshape(BLOCK // 32, 32))
                score = tl.where(is_before & (weight >= min_p), score, float("-inf"))
                chunk_best = max_2d(score)
                if chunk_best > best:
                    best = chunk_best
                    best_token = tl.min(tl.min(tl.where(score == best, ids, NO_TOKEN), axis=1), axis=0)
                    best_key = max_2d(tl.where(ids == best_token, key, LOWEST_KEY))
        is_within = (mass_before < limit) & ((top_k == 0) | (num_before < top_k))
        if (token != NO_TOKEN) & ((num_before == 0) | is_within):
            is_done = 1
        else:
            token, pivot_token, pivot_key = best_token, best_token, best_key
            if best_token == NO_TOKEN:
                is_done = 1
    tl.store(token_ids + row, token.to(tl.int64))
