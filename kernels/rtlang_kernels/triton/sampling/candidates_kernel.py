"""Sampling under top-k, top-p and min-p from a few candidates, which many programs collect together.

Tokens are put into bins by their distance from the likeliest one, an eighth of a nat each. The tokens that top-k, top-p and min-p retain
are a prefix of the order "likelier first, then the lower id", so they lie within the first bins. The counts alone bound the number of those
bins: they must hold enough tokens for top-k; the weight beyond them, with each token at the upper edge of its bin, must be too small for
top-p to reach it; and no token beyond them may pass min-p. The tokens of those bins are written contiguously in order of their ids, and one
program per row samples among them exactly, as `filter_kernel` does over a whole row. Rows whose bins hold more than CAPACITY tokens are
left to that kernel.

Results do not depend on timing: counts are integers, weights are summed in a fixed order, positions come from prefix sums.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit
from rtlang_kernels.triton.sampling import noise_kernel as noise
from rtlang_kernels.triton.sampling.filter_kernel import LOWEST_KEY, order_key, sum_2d
from rtlang_kernels.triton.sampling.sample_kernel import NO_TOKEN, masked_chunk

NUM_BINS = 256
BINS = tl.constexpr(NUM_BINS)
PER_NAT = tl.constexpr(8.0)
LOG2_PER_BIN = tl.constexpr(1.4426950408889634 / 8.0)
ROOM = tl.constexpr(1.00001)  # weights are float32 approximations of exponentials
CHUNKS_AT_A_TIME = tl.constexpr(16)


@jit
def _bin(scaled: tl.tensor, top: tl.tensor) -> tl.tensor:
    """The bin of a token, 0 for the likeliest; the last bin is unbounded."""
    return tl.minimum((top - scaled) * PER_NAT, BINS - 1.0).to(tl.int32)


@jit
def filter_histogram(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    rows: tl.tensor,
    factors: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    is_finite: tl.tensor,
    row_top: tl.tensor,
    counts: tl.tensor,
    masses: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> None:
    """Count tokens per bin of one chunk of one filtered row, and sum their weight (float64). Grid: (chunks, filtered rows)."""
    chunk, index = tl.program_id(0), tl.program_id(1)
    row = tl.load(rows + index)
    if tl.load(is_finite + row) == 0:
        return
    line = logits + row.to(tl.int64) * row_stride
    mask_row = tl.load(mask_rows + row)
    x, _, _ = masked_chunk(line, bitmask, mask_row, num_words, chunk, vocab_size, BLOCK, HAS_MASK)
    top = tl.load(row_top + row)
    scaled = x * tl.load(factors + row)
    is_token = x > float("-inf")
    found = tl.histogram(_bin(scaled, top).reshape(BLOCK), BINS, mask=is_token.reshape(BLOCK))
    place = index.to(tl.int64) * tl.num_programs(0) + chunk
    tl.store(counts + place * BINS + tl.arange(0, BINS), found)
    weight = tl.where(is_token, noise.exponential(scaled - top), 0.0).to(tl.float64)
    tl.store(masses + place, sum_2d(weight))


@jit
def filter_cut(
    rows: tl.tensor,
    top_ks: tl.tensor,
    top_ps: tl.tensor,
    min_ps: tl.tensor,
    is_finite: tl.tensor,
    counts: tl.tensor,
    masses: tl.tensor,
    num_chunks: tl.tensor,
    cuts: tl.tensor,
    starts: tl.tensor,
    totals: tl.tensor,
    retained_ks: tl.tensor,
    NUM_CHUNKS: tl.constexpr,
    CAPACITY: tl.constexpr,
) -> None:
    """Find the last bin of candidates of one filtered row (-1: too many, or an invalid row), and the start of each chunk's candidates.

    Grid: (filtered rows,). Also writes `totals` (weight of the whole row) and `retained_ks` (top_k, 0 if it retains every token).
    NUM_CHUNKS: a power of two, at least the number of chunks.
    """
    index = tl.program_id(0)
    row = tl.load(rows + index)
    if tl.load(is_finite + row) == 0:
        tl.store(cuts + index, -1)
        return
    bins = tl.arange(0, BINS)
    first_chunk = index.to(tl.int64) * num_chunks
    total = tl.zeros([BINS], tl.int32)
    for first in range(0, num_chunks, CHUNKS_AT_A_TIME):
        chunk = first + tl.arange(0, CHUNKS_AT_A_TIME)
        place = counts + (first_chunk + chunk)[:, None] * BINS + bins[None, :]
        total += tl.sum(tl.load(place, mask=(chunk < num_chunks)[:, None], other=0), axis=0)
    every_chunk = tl.arange(0, NUM_CHUNKS)
    mass = tl.sum(tl.load(masses + first_chunk + every_chunk, mask=every_chunk < num_chunks, other=0.0), axis=0)

    top_k, top_p, min_p = tl.load(top_ks + row), tl.load(top_ps + row), tl.load(min_ps + row)
    top_k = tl.where(top_k >= tl.sum(total, axis=0), 0, top_k)
    through = tl.cumsum(total, axis=0)
    most = tl.exp2(bins.to(tl.float32) * -LOG2_PER_BIN) * ROOM  # largest weight of a token of the bin
    weight = total.to(tl.float64) * most.to(tl.float64)
    beyond = tl.sum(weight, axis=0) - tl.cumsum(weight, axis=0)
    last = BINS - 1
    if top_k > 0:  # top-p needs the weight of the whole top-k set
        last = tl.minimum(last, tl.sum((through < top_k).to(tl.int32), axis=0))
    else:
        if top_p < 1.0:
            is_short = beyond > mass - top_p.to(tl.float64) * mass
            last = tl.minimum(last, tl.sum(is_short.to(tl.int32), axis=0))
        last = tl.minimum(last, tl.maximum(tl.sum((most >= min_p).to(tl.int32), axis=0) - 1, 0))
    num = tl.sum(tl.where(bins <= last, total, 0), axis=0)
    last = tl.where(num > CAPACITY, -1, last)
    tl.store(cuts + index, last)
    tl.store(totals + index, mass)
    tl.store(retained_ks + index, top_k)

    begin = 0
    for first in range(0, num_chunks, CHUNKS_AT_A_TIME):
        chunk = first + tl.arange(0, CHUNKS_AT_A_TIME)
        is_chunk = chunk < num_chunks
        place = counts + (first_chunk + chunk)[:, None] * BINS + bins[None, :]
        is_near = is_chunk[:, None] & (bins <= last)[None, :]
        found = tl.sum(tl.load(place, mask=is_near, other=0), axis=1)
        tl.store(starts + first_chunk + chunk, begin + tl.cumsum(found, axis=0) - found, mask=is_chunk)
        begin += tl.sum(found, axis=0)
    tl.store(starts + tl.num_programs(0).to(tl.int64) * num_chunks + index, begin)


@jit
def filter_collect(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    rows: tl.tensor,
    factors: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    row_top: tl.tensor,
    cuts: tl.tensor,
    starts: tl.tensor,
    candidates: tl.tensor,
    BLOCK: tl.constexpr,
    CAPACITY: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> None:
    """Collect the candidates of one chunk of one filtered row, by ascending id. Grid: (chunks, filtered rows)."""
    chunk, index = tl.program_id(0), tl.program_id(1)
    cut = tl.load(cuts + index)
    if cut < 0:
        return
    row = tl.load(rows + index)
    line = logits + row.to(tl.int64) * row_stride
    mask_row = tl.load(mask_rows + row)
    x, ids, _ = masked_chunk(line, bitmask, mask_row, num_words, chunk, vocab_size, BLOCK, HAS_MASK)
    bins = _bin(x * tl.load(factors + row), tl.load(row_top + row))
    is_near = ((x > float("-inf")) & (bins <= cut)).reshape(BLOCK)
    count = is_near.to(tl.int32)
    place = tl.load(starts + index.to(tl.int64) * tl.num_programs(0) + chunk) + tl.cumsum(count, axis=0) - count
    tl.store(candidates + index.to(tl.int64) * CAPACITY + place, ids.reshape(BLOCK), mask=is_near)


@jit
def _kth_key(key: tl.tensor, is_entry: tl.tensor, top_k: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Key of the top_k-th likeliest of more than top_k entries, and how many entries with this key are among the first top_k."""
    digits = tl.arange(0, 256)
    bits = (key ^ LOWEST_KEY).to(tl.uint32, bitcast=True)  # ascends as an unsigned integer
    prefix, left = 0, top_k
    for digit in range(4):
        shift = 24 - 8 * digit
        above = ((bits >> shift) >> 8).to(tl.int32)  # digits found so far
        counts = tl.histogram(((bits >> shift) & 255).to(tl.int32), 256, mask=is_entry & (above == prefix))
        at_least = tl.sum(counts, axis=0) - tl.cumsum(counts, axis=0) + counts
        place = tl.maximum(tl.max(tl.where(at_least >= left, digits, -1), axis=0), 0)
        left -= tl.sum(tl.where(digits > place, counts, 0), axis=0)
        prefix = (prefix << 8) | place
    return prefix ^ LOWEST_KEY, left


@jit
def filter_choose(
    logits: tl.tensor,
    row_stride: tl.tensor,
    rows: tl.tensor,
    factors: tl.tensor,
    keys: tl.tensor,
    steps: tl.tensor,
    top_ps: tl.tensor,
    min_ps: tl.tensor,
    row_top: tl.tensor,
    cuts: tl.tensor,
    starts: tl.tensor,
    totals: tl.tensor,
    retained_ks: tl.tensor,
    num_chunks: tl.tensor,
    candidates: tl.tensor,
    token_ids: tl.tensor,
    CAPACITY: tl.constexpr,
) -> None:
    """Sample among the candidates of one filtered row. Grid: (filtered rows,). For correctness see `filter_kernel`."""
    index = tl.program_id(0)
    if tl.load(cuts + index) < 0:
        return
    row = tl.load(rows + index)
    num = tl.load(starts + tl.num_programs(0).to(tl.int64) * num_chunks + index)
    factor, top = tl.load(factors + row), tl.load(row_top + row)
    top_k, top_p, min_p = tl.load(retained_ks + index), tl.load(top_ps + row), tl.load(min_ps + row)
    entry = tl.arange(0, CAPACITY)
    is_entry = entry < num
    ids = tl.load(candidates + index.to(tl.int64) * CAPACITY + entry, mask=is_entry, other=0)
    x = tl.load(logits + row.to(tl.int64) * row_stride + ids, mask=is_entry, other=float("-inf")).to(tl.float32)
    scaled = x * factor
    key = order_key(scaled)
    weight = tl.where(is_entry, noise.exponential(scaled - top), 0.0)
    random = noise.words_at(
        tl.load(keys + 2 * row),
        tl.load(keys + 2 * row + 1),
        tl.load(steps + 2 * row),
        tl.load(steps + 2 * row + 1),
        ids,
    )
    score = tl.where(is_entry & (weight >= min_p), scaled + noise.gumbel(random), float("-inf"))

    cut, num_ties = LOWEST_KEY, NO_TOKEN
    mass = tl.load(totals + index)
    if top_k > 0:
        cut, num_ties = _kth_key(key, is_entry, top_k)
        mass = tl.sum(tl.where(key > cut, weight, 0.0).to(tl.float64), axis=0)
        mass += tl.max(tl.where(key == cut, weight, 0.0), axis=0).to(tl.float64) * num_ties.to(tl.float64)
    limit = tl.full([], float("inf"), tl.float64)  # weight that may precede a retained token
    if top_p < 1.0:
        limit = top_p.to(tl.float64) * mass

    pivot_key, pivot_token = LOWEST_KEY, NO_TOKEN  # all tokens precede the first pivot
    token = NO_TOKEN
    is_done = 0
    while is_done == 0:
        is_before = is_entry & (key >= cut) & ((key > pivot_key) | ((key == pivot_key) & (ids < pivot_token)))
        num_before = tl.sum(is_before.to(tl.int32), axis=0)
        mass_before = tl.sum(tl.where(is_before, weight, 0.0).to(tl.float64), axis=0)
        kept = tl.where(is_before, score, float("-inf"))
        best = tl.max(kept, axis=0)
        best_token = tl.min(tl.where((kept == best) & (kept > float("-inf")), ids, NO_TOKEN), axis=0)
        best_key = tl.max(tl.where(is_entry & (ids == best_token), key, LOWEST_KEY), axis=0)
        is_within = (mass_before < limit) & ((top_k == 0) | (num_before < top_k))
        if (token != NO_TOKEN) & ((num_before == 0) | is_within):
            is_done = 1
        else:
            token, pivot_token, pivot_key = best_token, best_token, best_key
            if best_token == NO_TOKEN:
                is_done = 1
    tl.store(token_ids + row, token.to(tl.int64))
