"""Kernels for log-probabilities, penalties and masks over rows of logits.

The likeliest tokens are the largest packed 64-bit keys (logit in order-preserving bits, then the inverted id, so that
the lower id comes first among equals): a few from every chunk of the vocabulary, then the few of those.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
NOTHING = tl.constexpr(-0x8000000000000000)  # below every key


@jit
def _packed_key(x: tl.tensor, token: tl.tensor) -> tl.tensor:
    """int64 that ascends with the logit, then descends with the id. -0 equals 0."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    order = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64)
    return (order << 32) | (0x7FFFFFFF - token).to(tl.int64)


@jit
def logprob_chunks(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    chunk_max: tl.tensor,
    chunk_sum: tl.tensor,
    chunk_keys: tl.tensor,
    num_top: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Process one chunk of one row: maximum, sum of exponentials relative to it, num_top largest keys. Grid: (chunks, rows)."""
    chunk, row = tl.program_id(0), tl.program_id(1)
    token = chunk * BLOCK + tl.arange(0, BLOCK)
    is_token = token < vocab_size
    x = tl.load(logits + row.to(tl.int64) * row_stride + token, mask=is_token, other=float("-inf")).to(tl.float32)
    top = tl.max(x)
    base = tl.where(top == float("-inf"), 0.0, top)
    place = row.to(tl.int64) * tl.num_programs(0) + chunk
    tl.store(chunk_max + place, top)
    tl.store(chunk_sum + place, tl.sum(tl.exp2((x - base) * LOG2_E)))
    keys = tl.where(is_token, _packed_key(x, token), NOTHING)
    for index in range(num_top):
        best = tl.max(keys)
        tl.store(chunk_keys + place * num_top + index, best)
        keys = tl.where(keys == best, NOTHING, keys)


@jit
def logprob_finish(
    logits: tl.tensor,
    row_stride: tl.tensor,
    token_ids: tl.tensor,
    chunk_max: tl.tensor,
    chunk_sum: tl.tensor,
    chunk_keys: tl.tensor,
    num_chunks: tl.tensor,
    num_top: tl.tensor,
    chosen: tl.tensor,
    top_ids: tl.tensor,
    top_values: tl.tensor,
    NUM_CHUNKS: tl.constexpr,
    NUM_KEYS: tl.constexpr,
) -> None:
    """Finish one row: log-probability of its token and of the num_top likeliest. Grid: (rows,). NUM_*: sufficient powers of two."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.arange(0, NUM_CHUNKS)
    is_chunk = chunk < num_chunks
    tops = tl.load(chunk_max + row * num_chunks + chunk, mask=is_chunk, other=float("-inf"))
    sums = tl.load(chunk_sum + row * num_chunks + chunk, mask=is_chunk, other=0.0)
    top = tl.max(tops)
    base = tl.where(top == float("-inf"), 0.0, top)
    lse = top + LN_2 * tl.log2(tl.sum(sums * tl.exp2((tops - base) * LOG2_E)))
    x = tl.load(logits + row * row_stride + tl.load(token_ids + row)).to(tl.float32)
    tl.store(chosen + row, x - lse)
    entry = tl.arange(0, NUM_KEYS)
    num_keys = num_chunks * num_top
    keys = tl.load(chunk_keys + row * num_keys + entry, mask=entry < num_keys, other=NOTHING)
    for index in range(num_top):
        best = tl.max(keys)
        keys = tl.where(keys == best, NOTHING, keys)
        order = (best >> 32).to(tl.int32)
        value = (order ^ ((order >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
        tl.store(top_ids + row * num_top + index, 0x7FFFFFFF - (best & 0x7FFFFFFF))
        tl.store(top_values + row * num_top + index, value - lse)


@jit
def mask_logits(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Set forbidden logits of one chunk of one row to -inf; others are not written. Grid: (chunks, rows)."""
    chunk, row = tl.program_id(0), tl.program_id(1)
    mask_row = tl.load(mask_rows + row)
    if mask_row >= 0:
        word = chunk * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
        lane = tl.arange(0, 32)
        token = word[:, None] * 32 + lane[None, :]
        bits = tl.load(bitmask + mask_row.to(tl.int64) * num_words + word, mask=word < num_words, other=-1)
        is_forbidden = ((bits[:, None] >> lane[None, :]) & 1) == 0
        nothing = tl.full([BLOCK // 32, 32], float("-inf"), tl.float32).to(logits.dtype.element_ty)
        tl.store(logits + row.to(tl.int64) * row_stride + token, nothing, mask=is_forbidden & (token < vocab_size))


@jit
def penalize(
    logits: tl.tensor,
    row_stride: tl.tensor,
    rows: tl.tensor,
    token_ids: tl.tensor,
    counts: tl.tensor,
    num_entries: tl.tensor,
    repetitions: tl.tensor,
    presences: tl.tensor,
    frequencies: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Penalize BLOCK entries (row, token), none twice; counts: number of times generated, 0 if only in the prompt.

    Rounds to the type of the logits after each of the two changes. Per row: repetitions float32, presences and frequencies float64.
    """
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_entry = entry < num_entries
    row = tl.load(rows + entry, mask=is_entry, other=0)
    token = tl.load(token_ids + entry, mask=is_entry, other=0)
    count = tl.load(counts + entry, mask=is_entry, other=0)
    repetition = tl.load(repetitions + row, mask=is_entry, other=1.0)
    presence = tl.load(presences + row, mask=is_entry, other=0.0)
    frequency = tl.load(frequencies + row, mask=is_entry, other=0.0)
    element = logits.dtype.element_ty
    place = logits + row.to(tl.int64) * row_stride + token
    x = tl.load(place, mask=is_entry, other=0.0).to(tl.float32)
    x = tl.where(x > 0, tl.div_rn(x, repetition), x * repetition).to(element).to(tl.float32)
    penalty = presence + frequency * count.to(tl.float64)
    x = tl.where(count > 0, (x.to(tl.float64) - penalty).to(tl.float32), x)
    tl.store(place, x.to(element), mask=is_entry)
