"""The attention kernel for tiles of 128 query lines on sm_90, in Gluon. For where it is used, see `prompt_attention`.

One program computes one item of the widest class (`planning.work_items`) for one KV head, from the same inputs as `rect_attn` and to the
same outputs. It has three roles, each with warps and registers of its own:

- One warp copies keys and values into shared memory with the tensor memory accelerator. A copy is a box of BOX tokens and 64 elements, the
  widest row that products can read without bank conflicts, so the pages of a tile may lie anywhere. All boxes of a tile complete on one
  barrier. Boxes past the item's last page are requested past the end of the pool, which fills them with zeros.
- Two warpgroups multiply, 64 query lines each, and take turns: while one computes its softmax, the products of the other one run. Within
  a warpgroup, the scores of the next keys are started before the output of the last ones, so both products overlap with the softmax.

Keys and values are described as [slots, heads * size], the memory of a layer's pool. A tile has a ready and an empty barrier per pipeline
stage; waiting for phase 1 of a new barrier succeeds at once, so producers need no first pass of their own.

Masked keys: scores beyond a line's position become -inf, and values past the item's end become zero in shared memory, since a weight of
zero does not hide a NaN there. Keys before the item's beginning belong to the same row and have been written.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Gluon has no types for shared memory, descriptors and barriers that a checker could read.

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from rtlang_kernels.planning import work_items
from rtlang_kernels.planning.tile_sizes import LINES

# Renamed in triton 3.8.
copy_box = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared

LINES_CLASS = gl.constexpr(len(LINES) - 1)
TABLE_WIDTH = gl.constexpr(work_items.TABLE_WIDTH)
HALF = gl.constexpr(64)  # elements of a box: 128 bytes
GROUP_LINES = gl.constexpr(LINES[-1] // 2)  # query lines of a warpgroup
LOG2_E = gl.constexpr(1.4426950408889634)
LN_2 = gl.constexpr(0.6931471805599453)

# Uses its operand in a store that never happens, and the compiler cannot know that. Without it, the assembler moves the exponentials of
# the softmax below the wait for the products that they are meant to overlap with. Softmax totals are never negative.
NEVER_STORED = gl.constexpr(
    """{
    .reg .pred %stored;
    .reg .b32 %nowhere;
    mov.b32 %nowhere, 0;
    setp.lt.f32 %stored, $1, 0fBF800000;
    @%stored st.shared.f32 [%nowhere], $1;
    mov.b32 $0, $1;
    }"""
)


@gluon.jit
def _copy_tile(
    desc,
    tiles,
    ready,
    empty,
    table,
    block,
    first_position,
    end,
    kv_head,
    PAGE_SIZE: gl.constexpr,
    BOX: gl.constexpr,
    BLOCK_N: gl.constexpr,
    HEAD_DIM: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Start the copies of a tile of keys or values once its stage is empty."""
    stage = block % STAGES
    mbarrier.wait(empty.index(stage), (block // STAGES + 1) & 1)
    mbarrier.expect(ready.index(stage), BLOCK_N * HEAD_DIM * 2)
    for number in gl.static_range(BLOCK_N // BOX):
        position = first_position + block * BLOCK_N + number * BOX
        page = gl.load(table + gl.minimum(position, end - 1) // PAGE_SIZE)
        slot = page * PAGE_SIZE + position % PAGE_SIZE
        if position >= end:
            slot = desc.shape[0]
        for half in gl.static_range(HEAD_DIM // HALF):
            box = tiles.index(stage).slice(number * BOX, BOX).slice(half * HALF, HALF, dim=1)
            copy_box(desc, [slot, kv_head * HEAD_DIM + half * HALF], ready.index(stage), box)


@gluon.jit
def _copy(
    k_desc,
    v_desc,
    k_tiles,
    v_tiles,
    barriers,
    table,
    first_position,
    end,
    num_blocks,
    kv_head,
    PAGE_SIZE: gl.constexpr,
    BOX: gl.constexpr,
    BLOCK_N: gl.constexpr,
    HEAD_DIM: gl.constexpr,
    STAGES: gl.constexpr,
):
    """The role that copies: keys and values of all blocks, in the order in which they are read."""
    k_ready, k_empty, v_ready, v_empty, _ = barriers
    for block in range(num_blocks):
        _copy_tile(
            k_desc, k_tiles, k_ready, k_empty, table, block, first_position, end, kv_head, PAGE_SIZE, BOX, BLOCK_N, HEAD_DIM, STAGES
        )  # fmt: skip
        _copy_tile(
            v_desc, v_tiles, v_ready, v_empty, table, block, first_position, end, kv_head, PAGE_SIZE, BOX, BLOCK_N, HEAD_DIM, STAGES
        )  # fmt: skip


@gluon.jit
def _hide(scores, first_key, line_stop, LAYOUT: gl.constexpr, BLOCK_N: gl.constexpr):
    """-inf for the keys that a line does not see. The keys of the block are numbered from `first_key` on."""
    key = first_key + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, LAYOUT))
    return gl.where(key[None, :] < line_stop[:, None], scores, float("-inf"))


@gluon.jit
def _clear_values(tile, num_kept, BLOCK_N: gl.constexpr):
    """Zero the values from row `num_kept` on. Both warpgroups write the same."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    row = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, layout))
    values = tile.load(layout)
    tile.store(gl.where((row < num_kept)[:, None], values, gl.zeros_like(values)))
    hopper.fence_async_shared()


@gluon.jit
def _next_block(
    state,
    block,
    q_tiles,
    k_tiles,
    v_tiles,
    barriers,
    zeros,
    line_stop,
    factor,
    WARPGROUP: gl.constexpr,
    S_LAYOUT: gl.constexpr,
    O_LAYOUT: gl.constexpr,
    W_LAYOUT: gl.constexpr,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    MASKED: gl.constexpr,
):
    """Softmax state after the keys of `block`, and accumulators after the values of the block before it.

    `state` is (largest score, total, accumulators, weights of the block before). Products are counted by the hardware in order of their
    start: when one is left, the scores are there.
    """
    top, total, acc, weights = state
    k_ready, k_empty, v_ready, v_empty, turns = barriers
    stage, last = block % STAGES, (block - 1) % STAGES
    mbarrier.wait(k_ready.index(stage), block // STAGES & 1)
    mbarrier.wait(turns.index(WARPGROUP), block & 1)
    scores = hopper.warpgroup_mma(
        q_tiles.index(WARPGROUP), k_tiles.index(stage).permute((1, 0)), zeros, use_acc=False, is_async=True
    )
    mbarrier.wait(v_ready.index(last), (block - 1) // STAGES & 1)
    acc = hopper.warpgroup_mma(weights, v_tiles.index(last), acc, is_async=True)
    mbarrier.arrive(turns.index(1 - WARPGROUP), count=1)
    scores = hopper.warpgroup_mma_wait(1, deps=[scores])
    mbarrier.arrive(k_empty.index(stage), count=1)
    if MASKED:
        scores = _hide(scores, block * BLOCK_N, line_stop, S_LAYOUT, BLOCK_N)
    new_top = gl.maximum(top, gl.max(scores, axis=1) * factor)
    if MASKED:
        base = gl.where(new_top == float("-inf"), 0.0, new_top)  # no visible key so far
    else:
        base = new_top
    shares = gl.exp2(scores * factor - base[:, None])
    shrink = gl.exp2(top - base)
    total = total * shrink + gl.sum(shares, axis=1)
    total = gl.inline_asm_elementwise(NEVER_STORED, "=f,f", [total], dtype=gl.float32, is_pure=False, pack=1)
    acc, shares, total = hopper.warpgroup_mma_wait(0, deps=[acc, shares, total])
    mbarrier.arrive(v_empty.index(last), count=1)
    acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, O_LAYOUT))[:, None]
    return new_top, total, acc, gl.convert_layout(shares.to(q_tiles.dtype), W_LAYOUT)


@gluon.jit
def _attend(
    q,
    out,
    lse,
    partial_out,
    partial_lse,
    sinks,
    positions,
    q_tiles,
    k_tiles,
    v_tiles,
    barriers,
    item,
    first_position,
    num_blocks,
    kv_head,
    q_stride,
    scale,
    WARPGROUP: gl.constexpr,
    NUM_KV_HEADS: gl.constexpr,
    GROUP: gl.constexpr,
    HEAD_DIM: gl.constexpr,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    HAS_SINKS: gl.constexpr,
):
    """The role that multiplies: GROUP_LINES query lines over all blocks, and their results."""
    begin, end, token_0, num_tokens, partial, full_hi = item
    k_ready, k_empty, v_ready, _, turns = barriers
    NUM_HEADS: gl.constexpr = NUM_KV_HEADS * GROUP
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    W_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    Q_LAYOUT: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    dtype: gl.constexpr = q_tiles.dtype
    factor = scale * LOG2_E

    # Queries of missing lines are zero, and their results are not stored.
    line = WARPGROUP * GROUP_LINES + gl.arange(0, GROUP_LINES, layout=gl.SliceLayout(1, Q_LAYOUT))
    token = token_0 + gl.minimum(line // GROUP, num_tokens - 1)
    source = token.to(gl.int64) * q_stride + (kv_head * GROUP + line % GROUP) * HEAD_DIM
    dims = gl.arange(0, HEAD_DIM, layout=gl.SliceLayout(0, Q_LAYOUT))[None, :]
    is_asked = (line < num_tokens * GROUP)[:, None]
    q_tiles.index(WARPGROUP).store(gl.load(q + source[:, None] + dims, mask=is_asked, other=0.0))
    hopper.fence_async_shared()

    row = WARPGROUP * GROUP_LINES + gl.arange(0, GROUP_LINES, layout=gl.SliceLayout(1, S_LAYOUT))
    row_token = token_0 + gl.minimum(row // GROUP, num_tokens - 1)
    # Keys are numbered from `first_position` on; a line sees those before its stop.
    line_stop = gl.minimum(gl.load(positions + row_token) + 1, end) - first_position
    zeros = gl.zeros([GROUP_LINES, BLOCK_N], gl.float32, layout=S_LAYOUT)

    # The first block has no block before it.
    mbarrier.wait(k_ready.index(0), 0)
    mbarrier.wait(turns.index(WARPGROUP), 0)
    scores = hopper.warpgroup_mma(
        q_tiles.index(WARPGROUP), k_tiles.index(0).permute((1, 0)), zeros, use_acc=False, is_async=True
    )
    mbarrier.arrive(turns.index(1 - WARPGROUP), count=1)
    scores = hopper.warpgroup_mma_wait(0, deps=[scores])
    mbarrier.arrive(k_empty.index(0), count=1)
    key = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, S_LAYOUT))
    scores = gl.where((key >= begin - first_position)[None, :], scores, float("-inf"))
    scores = _hide(scores, 0, line_stop, S_LAYOUT, BLOCK_N)
    top = gl.max(scores, axis=1) * factor
    shares = gl.exp2(scores * factor - gl.where(top == float("-inf"), 0.0, top)[:, None])
    total = gl.sum(shares, axis=1)
    weights = gl.convert_layout(shares.to(dtype), W_LAYOUT)
    acc = gl.zeros([GROUP_LINES, HEAD_DIM], gl.float32, layout=O_LAYOUT)

    # Every line sees the keys of the blocks before `num_full`.
    num_full = gl.minimum(gl.maximum((full_hi - first_position) // BLOCK_N, 1), num_blocks)
    for block in range(1, num_full):
        top, total, acc, weights = _next_block(
            (top, total, acc, weights), block, q_tiles, k_tiles, v_tiles, barriers, zeros, line_stop, factor,
            WARPGROUP, S_LAYOUT, O_LAYOUT, W_LAYOUT, BLOCK_N, STAGES, False,
        )  # fmt: skip
    for block in range(num_full, num_blocks):
        top, total, acc, weights = _next_block(
            (top, total, acc, weights), block, q_tiles, k_tiles, v_tiles, barriers, zeros, line_stop, factor,
            WARPGROUP, S_LAYOUT, O_LAYOUT, W_LAYOUT, BLOCK_N, STAGES, True,
        )  # fmt: skip

    # The values of the last block, the only one that reaches past the end.
    last = num_blocks - 1
    mbarrier.wait(v_ready.index(last % STAGES), last // STAGES & 1)
    num_kept = end - first_position - last * BLOCK_N
    if num_kept < BLOCK_N:
        _clear_values(v_tiles.index(last % STAGES), num_kept, BLOCK_N)
    acc = hopper.warpgroup_mma(weights, v_tiles.index(last % STAGES), acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(0, deps=[acc])

    row_lse = gl.where(total > 0, top + gl.log2(gl.where(total > 0, total, 1.0)), float("-inf"))
    row_lse = gl.where(total != total, total, row_lse)  # propagate NaN of a query
    share = 1.0 / gl.where(total == 0, 1.0, total)
    head = kv_head * GROUP + row % GROUP
    is_row = row < num_tokens * GROUP
    # results are laid out by the accumulators
    o_row = WARPGROUP * GROUP_LINES + gl.arange(0, GROUP_LINES, layout=gl.SliceLayout(1, O_LAYOUT))
    o_head = kv_head * GROUP + o_row % GROUP
    o_dims = gl.arange(0, HEAD_DIM, layout=gl.SliceLayout(0, O_LAYOUT))[None, :]
    is_o_row = (o_row < num_tokens * GROUP)[:, None]
    if partial >= 0:
        gl.store(partial_lse + (partial + row // GROUP).to(gl.int64) * NUM_HEADS + head, row_lse, mask=is_row)
        o_share = gl.convert_layout(share, gl.SliceLayout(1, O_LAYOUT))[:, None]
        target = ((partial + o_row // GROUP).to(gl.int64) * NUM_HEADS + o_head)[:, None] * HEAD_DIM + o_dims
        gl.store(partial_out + target, acc * o_share, mask=is_o_row)
    else:
        if HAS_SINKS:  # a key without a value
            sink = gl.load(sinks + head).to(gl.float32) * LOG2_E
            most = gl.maximum(row_lse, sink)
            most = gl.where(most == float("-inf"), 0.0, most)
            seen = gl.exp2(row_lse - most)
            all_seen = seen + gl.exp2(sink - most)
            share = share * (seen / gl.where(all_seen == 0, 1.0, all_seen))
            row_lse = gl.where(all_seen > 0, most + gl.log2(all_seen), row_lse)
        gl.store(lse + row_token.to(gl.int64) * NUM_HEADS + head, row_lse * LN_2, mask=is_row)
        o_share = gl.convert_layout(share, gl.SliceLayout(1, O_LAYOUT))[:, None]
        o_token = token_0 + gl.minimum(o_row // GROUP, num_tokens - 1)
        target = (o_token.to(gl.int64) * NUM_HEADS + o_head)[:, None] * HEAD_DIM + o_dims
        gl.store(out + target, (acc * o_share).to(dtype), mask=is_o_row)


@gluon.jit
def prompt_attn(
    q,
    k_desc,
    v_desc,
    out,
    lse,
    partial_out,
    partial_lse,
    sinks,
    items,
    header,
    page_table,
    positions,
    q_stride,
    scale,
    NUM_KV_HEADS: gl.constexpr,
    GROUP: gl.constexpr,
    HEAD_DIM: gl.constexpr,
    PAGE_SIZE: gl.constexpr,
    BOX: gl.constexpr,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    HAS_SINKS: gl.constexpr,
) -> None:
    """Compute the items of the widest class. Grid: at least (items of the class) * NUM_KV_HEADS; surplus programs return.

    `k_desc` and `v_desc` describe [slots, NUM_KV_HEADS * HEAD_DIM] in boxes of [BOX, HALF]; BOX divides PAGE_SIZE and BLOCK_N. `scale` is
    positive.
    """
    item_id = gl.load(header + LINES_CLASS) + gl.program_id(0) // NUM_KV_HEADS
    kv_head = gl.program_id(0) % NUM_KV_HEADS
    if item_id >= gl.load(header + LINES_CLASS + 1):
        return
    fields = items + item_id * 8
    table_row, begin, end = gl.load(fields), gl.load(fields + 1), gl.load(fields + 2)
    item = (
        begin, end, gl.load(fields + 3), gl.load(fields + 4), gl.load(fields + 5), gl.load(fields + 7)
    )  # fmt: skip
    first_position = begin // BOX * BOX
    num_blocks = (end - first_position + BLOCK_N - 1) // BLOCK_N
    table = page_table + table_row.to(gl.int64) * gl.load(header + TABLE_WIDTH)

    dtype: gl.constexpr = k_desc.dtype
    q_tiles = gl.allocate_shared_memory(dtype, [2, GROUP_LINES, HEAD_DIM], k_desc.layout)
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, HEAD_DIM], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, BLOCK_N, HEAD_DIM], v_desc.layout)
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(stage), count=1)
        mbarrier.init(v_ready.index(stage), count=1)
        mbarrier.init(k_empty.index(stage), count=2)
        mbarrier.init(v_empty.index(stage), count=2)
    for warpgroup in gl.static_range(2):
        mbarrier.init(turns.index(warpgroup), count=1)
    mbarrier.arrive(turns.index(0), count=1)
    barriers = (k_ready, k_empty, v_ready, v_empty, turns)

    gl.warp_specialize(
        [
            (_attend, (
                q, out, lse, partial_out, partial_lse, sinks, positions, q_tiles, k_tiles, v_tiles, barriers, item, first_position,
                num_blocks, kv_head, q_stride, scale, 0, NUM_KV_HEADS, GROUP, HEAD_DIM, BLOCK_N, STAGES, HAS_SINKS,
            )),
            (_attend, (
                q, out, lse, partial_out, partial_lse, sinks, positions, q_tiles, k_tiles, v_tiles, barriers, item, first_position,
                num_blocks, kv_head, q_stride, scale, 1, NUM_KV_HEADS, GROUP, HEAD_DIM, BLOCK_N, STAGES, HAS_SINKS,
            )),
            (_copy, (
                k_desc, v_desc, k_tiles, v_tiles, barriers, table, first_position, end, num_blocks, kv_head, PAGE_SIZE, BOX, BLOCK_N,
                HEAD_DIM, STAGES,
            )),
        ],
        [4, 1],
        [232, 40],
    )  # fmt: skip
