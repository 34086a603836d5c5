"""Sampling kernels: mask, temperature, maximum and noise in one pass over the logits, then one small program per row.

The first kernel reads each logit once and records, for each chunk of the vocabulary, the maximum and the best approximate score (logit /
temperature + noise computed with hardware logarithms). The second finds the chunks, almost always one, whose approximate score is within a
margin of the best, and computes their scores exactly. So the token always matches the reference, although exact noise is computed for only
a few chunks. Rows with top-k, top-p or min-p are then sampled by `candidates_kernel` and `filter_kernel`.

A chunk has the shape [words of the mask, 32 tokens], so that each mask word is loaded once and its bits are extracted by shifting.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit
from rtlang_kernels.triton.sampling import noise_kernel as noise

GREEDY, SAMPLED, FILTERED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # kinds of rows
NO_TOKEN = tl.constexpr(0x7FFFFFFF)


@jit
def masked_chunk(
    logits: tl.tensor,
    bitmask: tl.tensor,
    mask_row: tl.tensor,
    num_words: tl.tensor,
    chunk: tl.tensor,
    vocab_size: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Load a chunk of a row: float32 logits, -inf where forbidden; ids; whether any logit is NaN. Shapes [BLOCK // 32, 32]."""
    word = chunk * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    lane = tl.arange(0, 32)
    token = word[:, None] * 32 + lane[None, :]
    is_token = token < vocab_size
    x = tl.load(logits + token, mask=is_token, other=float("-inf")).to(tl.float32)
    has_nan = tl.max(tl.max((x != x).to(tl.int32), axis=1), axis=0)
    if HAS_MASK:
        row = bitmask + tl.maximum(mask_row, 0).to(tl.int64) * num_words
        bits = tl.load(row + word, mask=word < num_words, other=0) | tl.where(mask_row < 0, -1, 0)
        x = tl.where(((bits[:, None] >> lane[None, :]) & 1) != 0, x, float("-inf"))
    return x, token, has_nan


@jit
def sample_stats(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    kinds: tl.tensor,
    factors: tl.tensor,
    keys: tl.tensor,
    steps: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    chunk_top: tl.tensor,
    chunk_token: tl.tensor,
    chunk_score: tl.tensor,
    chunk_nan: tl.tensor,
    BLOCK: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> None:
    """Process one chunk of one row. Grid: (chunks, rows).

    Writes its maximum, the first token that attains it, the best approximate score, and whether any logit is NaN.
    """
    chunk, row = tl.program_id(0), tl.program_id(1)
    kind = tl.load(kinds + row)
    factor = tl.load(factors + row)
    line = logits + row.to(tl.int64) * row_stride
    x, token, has_nan = masked_chunk(
        line, bitmask, tl.load(mask_rows + row), num_words, chunk, vocab_size, BLOCK, HAS_MASK
    )
    scaled = x * factor
    top = tl.max(tl.max(scaled, axis=1), axis=0)
    first = tl.min(tl.min(tl.where(scaled == top, token, NO_TOKEN), axis=1), axis=0)
    score = top  # score of a greedy row
    if (kind == SAMPLED) & (top > float("-inf")):
        random = noise.words(
            tl.load(keys + 2 * row),
            tl.load(keys + 2 * row + 1),
            tl.load(steps + 2 * row),
            tl.load(steps + 2 * row + 1),
            chunk * (BLOCK // 4),
            BLOCK // 4,
        )
        scores = scaled + noise.rough_gumbel(random.reshape(BLOCK // 32, 32))
        score = tl.max(tl.max(scores, axis=1), axis=0)
    place = row * tl.num_programs(0) + chunk
    tl.store(chunk_top + place, top)
    tl.store(chunk_token + place, first)
    tl.store(chunk_score + place, score)
    tl.store(chunk_nan + place, has_nan)


@jit
def sample_finish(
    logits: tl.tensor,
    row_stride: tl.tensor,
    vocab_size: tl.tensor,
    kinds: tl.tensor,
    factors: tl.tensor,
    keys: tl.tensor,
    steps: tl.tensor,
    bitmask: tl.tensor,
    mask_rows: tl.tensor,
    num_words: tl.tensor,
    chunk_top: tl.tensor,
    chunk_token: tl.tensor,
    chunk_score: tl.tensor,
    chunk_nan: tl.tensor,
    num_chunks: tl.tensor,
    token_ids: tl.tensor,
    is_finite: tl.tensor,
    row_top: tl.tensor,
    BLOCK: tl.constexpr,
    NUM_CHUNKS: tl.constexpr,
    HAS_MASK: tl.constexpr,
) -> None:
    """Finish one row: validity, maximum, and token unless it is filtered. Grid: (rows,). NUM_CHUNKS: a power of two."""
    row = tl.program_id(0)
    chunks = tl.arange(0, NUM_CHUNKS)
    place = row * num_chunks + chunks
    is_chunk = chunks < num_chunks
    tops = tl.load(chunk_top + place, mask=is_chunk, other=float("-inf"))
    firsts = tl.load(chunk_token + place, mask=is_chunk, other=NO_TOKEN)
    any_nan = tl.max(tl.load(chunk_nan + place, mask=is_chunk, other=0))
    top = tl.max(tops)
    token = tl.min(tl.where(tops == top, firsts, NO_TOKEN))
    is_sound = tl.where((any_nan == 0) & (top > float("-inf")) & (top < float("inf")), 1, 0)
    tl.store(is_finite + row, is_sound.to(tl.int8))
    tl.store(row_top + row, top)
    if is_sound == 0:
        token = 0
    if (tl.load(kinds + row) == SAMPLED) & (is_sound == 1):
        factor = tl.load(factors + row)
        line = logits + row.to(tl.int64) * row_stride
        scores = tl.load(chunk_score + place, mask=is_chunk, other=float("-inf"))
        best_rough = tl.max(scores)
        bound = best_rough - (noise.MARGIN + noise.RELATIVE_MARGIN * tl.abs(best_rough))
        is_open = ((scores >= bound) & (scores > float("-inf"))).to(tl.int32)
        best = float("-inf")
        token = NO_TOKEN
        while tl.max(is_open) > 0:
            chunk = tl.min(tl.where(is_open > 0, chunks, NUM_CHUNKS))
            is_open = tl.where(chunks == chunk, 0, is_open)
            x, ids, _ = masked_chunk(
                line, bitmask, tl.load(mask_rows + row), num_words, chunk, vocab_size, BLOCK, HAS_MASK
            )
            random = noise.words(
                tl.load(keys + 2 * row),
                tl.load(keys + 2 * row + 1),
                tl.load(steps + 2 * row),
                tl.load(steps + 2 * row + 1),
                chunk * (BLOCK // 4),
                BLOCK // 4,
            )
            exact = x * factor + noise.gumbel(random.reshape(BLOCK // 32, 32))
            chunk_best = tl.max(tl.max(exact, axis=1), axis=0)
            winner = tl.min(tl.min(tl.where(exact == chunk_best, ids, NO_TOKEN), axis=1), axis=0)
            if chunk_best > best:  # chunks are in order, so the lowest id wins a tie
                best = chunk_best
                token = winner
    tl.store(token_ids + row, token.to(tl.int64))
