"""Kernels that choose experts, and that sort pairs of tokens and slots by expert.

Pairs are sorted by counting: each chunk counts its pairs of each expert, and the place of a pair follows from the counts of all chunks
and from its rank in its own. Only integers are added, so no order of programs changes a result, and the host reads nothing.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.triton.primitives.jit import jit

BLOCK_FIELDS = tl.constexpr(4)  # int32 of a block of pairs: expert, first place, number of pairs, unused


@jit
def route_tokens(
    logits: tl.tensor,
    expert_ids: tl.tensor,
    weights: tl.tensor,
    num_experts: tl.tensor,
    logits_stride: tl.tensor,
    NUM_SLOTS: tl.constexpr,
    IS_NORMALIZED: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_S: tl.constexpr,
) -> None:
    """Choose the experts of one token, the likeliest first, and the lower one among equals. Grid: (tokens,).

    Weights are the softmax over all experts, or if IS_NORMALIZED, over the chosen ones. A number is chosen before NaN and
    infinity, and if there is one, all weights are NaN.
    """
    token = tl.program_id(0).to(tl.int64)
    lanes, slots = tl.arange(0, BLOCK_E), tl.arange(0, BLOCK_S)
    is_expert = lanes < num_experts
    values = tl.load(logits + token * logits_stride + lanes, mask=is_expert, other=float("-inf")).to(tl.float32)
    is_number = (values == values) & (values < float("inf"))  # or no expert
    left = tl.where(is_number, values, float("-inf"))
    largest = tl.max(left, 0)
    has_others = tl.max((~is_number).to(tl.int32), 0) > 0
    largest = tl.where(has_others, float("nan"), largest)
    chosen, ids = tl.full((BLOCK_S,), float("-inf"), tl.float32), tl.zeros((BLOCK_S,), tl.int32)
    for slot in tl.static_range(NUM_SLOTS):
        best = tl.max(left, 0)
        index = tl.min(tl.where(left == best, lanes, BLOCK_E), 0)
        chosen, ids = tl.where(slots == slot, best, chosen), tl.where(slots == slot, index, ids)
        left = tl.where(lanes == index, float("-inf"), left)
    found = tl.exp(chosen - largest)
    if IS_NORMALIZED:
        total = tl.sum(tl.where(slots < NUM_SLOTS, found, 0.0), 0)
    else:
        total = tl.sum(tl.where(is_number, tl.exp(values - largest), 0.0), 0)
    places = token * NUM_SLOTS + slots
    tl.store(expert_ids + places, ids.to(tl.int64), mask=slots < NUM_SLOTS)
    tl.store(weights + places, found / total, mask=slots < NUM_SLOTS)


@jit
def _chunk_ids(expert_ids: tl.tensor, pairs: tl.tensor, num_entries: tl.tensor, num_experts: tl.tensor) -> tl.tensor:
    """The experts of some pairs: int32, `num_experts` for none."""
    ids = tl.load(expert_ids + pairs, mask=pairs < num_entries, other=-1)
    return tl.where((ids >= 0) & (ids < num_experts), ids, num_experts).to(tl.int32)


@jit
def count_pairs(
    expert_ids: tl.tensor,
    counts: tl.tensor,
    num_entries: tl.tensor,
    num_experts: tl.tensor,
    CHUNK: tl.constexpr,
    BLOCK_E: tl.constexpr,
) -> None:
    """Count the pairs of each expert in a chunk: counts int32 [chunks, BLOCK_E]. Grid: (chunks,)."""
    pairs = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    ids = _chunk_ids(expert_ids, pairs, num_entries, num_experts)
    found = tl.histogram(tl.minimum(ids, num_experts - 1), BLOCK_E, mask=ids < num_experts)
    tl.store(counts + tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E), found)


@jit
def place_pairs(
    expert_ids: tl.tensor,
    counts: tl.tensor,
    order: tl.tensor,
    blocks: tl.tensor,
    num_entries: tl.tensor,
    num_experts: tl.tensor,
    num_chunks: tl.tensor,
    block_size: tl.tensor,
    IS_COUNTED: tl.constexpr,
    CHUNK: tl.constexpr,
    STEP: tl.constexpr,
    CHUNK_STEP: tl.constexpr,
    BLOCK_E: tl.constexpr,
) -> None:
    """Write the pairs of a chunk to their places in `order`, sorted by expert; pairs of no expert get no place. Grid: (chunks,).

    The first program also cuts the places of each expert into blocks of `block_size`, and writes `blocks`: int32, first their number, then
    from BLOCK_FIELDS on the fields of each. If not IS_COUNTED, there is one chunk, and `counts` is not read.
    """
    chunk, lanes = tl.program_id(0), tl.arange(0, BLOCK_E)
    pairs = chunk * CHUNK + tl.arange(0, CHUNK)
    ids = _chunk_ids(expert_ids, pairs, num_entries, num_experts)
    before = tl.zeros((BLOCK_E,), tl.int32)
    if IS_COUNTED:
        total = tl.zeros((BLOCK_E,), tl.int32)
        for first in range(0, num_chunks, CHUNK_STEP):
            chunks = first + tl.arange(0, CHUNK_STEP)
            places = (chunks * BLOCK_E)[:, None] + lanes[None, :]
            found = tl.load(counts + places, mask=(chunks < num_chunks)[:, None], other=0)
            total += tl.sum(found, 0)
            before += tl.sum(tl.where((chunks < chunk)[:, None], found, 0), 0)
    else:
        total = tl.histogram(tl.minimum(ids, num_experts - 1), BLOCK_E, mask=ids < num_experts)
    starts = tl.cumsum(total, 0) - total
    rank = tl.zeros((CHUNK,), tl.int32)
    for first in range(chunk * CHUNK, tl.minimum((chunk + 1) * CHUNK, num_entries), STEP):
        others = first + tl.arange(0, STEP)
        their_ids = _chunk_ids(expert_ids, others, num_entries, num_experts)
        is_before = (ids[:, None] == their_ids[None, :]) & (others[None, :] < pairs[:, None])
        rank += tl.sum(is_before.to(tl.int32), 1)
    base = tl.gather(starts + before, tl.minimum(ids, num_experts - 1), 0)
    tl.store(order + base + rank, pairs, mask=ids < num_experts)
    if chunk == 0:
        num_blocks = (total + block_size - 1) // block_size
        first_blocks = tl.cumsum(num_blocks, 0) - num_blocks
        tl.store(blocks, tl.sum(num_blocks, 0))
        for index in range(tl.max(num_blocks, 0)):
            fields = blocks + BLOCK_FIELDS * (1 + first_blocks + index)
            is_block = index < num_blocks
            tl.store(fields, lanes, mask=is_block)
            tl.store(fields + 1, starts + index * block_size, mask=is_block)
            tl.store(fields + 2, tl.minimum(total - index * block_size, block_size), mask=is_block)
