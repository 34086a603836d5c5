"""The attention kernel over rectangles. For the contract see `ops.paged_attention_with_lse`.

One program computes one item (`planning.work_items`) for one KV head: BLOCK_M query lines, packed as (token, head of the group), so that a
key is loaded once for all heads and tokens that read it. It iterates over its keys BLOCK_N at a time with an online softmax in base 2. Keys
visible to every token of the item go through a loop without masks; ragged edges, the causal triangle and the lower edge of a window go
through a second one. A head dimension is split into one or two powers of two (80 is 64 + 16), so little work is wasted on padding.

Why masked lanes are safe: lines beyond the item are zero and never stored; keys beyond it are loaded as zero and get the score -inf; all
other keys belong to a row and have been written.
"""

from __future__ import annotations

import triton.language as tl

from rtlang_kernels.planning import work_items
from rtlang_kernels.triton.attention.merge_kernel import LN_2, LOG2_E, with_sink
from rtlang_kernels.triton.primitives.early_start import wait_for_inputs
from rtlang_kernels.triton.primitives.float8 import read_float8
from rtlang_kernels.triton.primitives.jit import jit

TABLE_WIDTH = tl.constexpr(work_items.TABLE_WIDTH)


@jit
def _product(a: tl.tensor, b: tl.tensor, UPCAST: tl.constexpr, PRECISION: tl.constexpr) -> tl.tensor:
    """a @ b with float32 sums. UPCAST: the interpreter multiplies bfloat16 as raw bits. PRECISION: mode of float32 products."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision=PRECISION)
    else:
        return tl.dot(a, b, input_precision=PRECISION)


@jit
def _load_2d(
    base: tl.tensor,
    offsets: tl.tensor,
    dims: tl.tensor,
    rows_valid: tl.tensor,
    SIZE: tl.constexpr,
    MASKED: tl.constexpr,
) -> tl.tensor:
    """Load base[offsets + dims]; zero in invalid rows, if MASKED, and in dimensions beyond SIZE."""
    if MASKED:
        return tl.load(base + offsets + dims, mask=rows_valid & (dims < SIZE), other=0.0)
    else:
        return tl.load(base + offsets + dims, mask=dims < SIZE, other=0.0)


@jit
def _pages(
    table: tl.tensor, begin: tl.tensor, end: tl.tensor, PAGE_SIZE: tl.constexpr, BLOCK_N: tl.constexpr
) -> tl.tensor:
    """Pages of the keys at [begin, begin + BLOCK_N); of the last key before `end` for those beyond it. `end` is at least 1."""
    return tl.load(table + tl.minimum(begin + tl.arange(0, BLOCK_N), end - 1) // PAGE_SIZE)


@jit
def _attend(
    state: tl.tensor,
    q_lo: tl.tensor,
    q_hi: tl.tensor,
    k_base: tl.tensor,
    v_base: tl.tensor,
    page: tl.tensor,
    begin: tl.tensor,
    end: tl.tensor,
    line_first: tl.tensor,
    line_last: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    scale: tl.tensor,
    soft_cap: tl.tensor,
    HEAD_DIM: tl.constexpr,
    V_HEAD_DIM: tl.constexpr,
    D_LO: tl.constexpr,
    D_HI: tl.constexpr,
    V_LO: tl.constexpr,
    V_HI: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HAS_SOFT_CAP: tl.constexpr,
    MASKED: tl.constexpr,
    UPCAST: tl.constexpr,
    PRECISION: tl.constexpr,
    KV_FLOAT8: tl.constexpr,
    NATIVE_FLOAT8: tl.constexpr,
    LATENT: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Softmax state after the keys at [begin, begin + BLOCK_N), limited by `end` and, if MASKED, by the bounds of each line.

    `page` is the page of each of these keys, from `_pages`. LATENT: the first D_LO elements of a key are its value, so the tile of keys
    is multiplied with the weights too and no value is loaded.
    """
    top, total, acc_lo, acc_hi = state
    position = begin + tl.arange(0, BLOCK_N)
    is_key = position < end
    slot = page.to(tl.int64) * PAGE_SIZE + position % PAGE_SIZE
    k_offsets, v_offsets = (slot * k_stride)[None, :], (slot * v_stride)[:, None]
    k_lo = _load_2d(k_base, k_offsets, tl.arange(0, D_LO)[:, None], is_key[None, :], HEAD_DIM, MASKED)
    if KV_FLOAT8:
        k_lo = read_float8(k_lo, NATIVE_FLOAT8).to(q_lo.dtype)
    scores = _product(q_lo, k_lo, UPCAST, PRECISION)  # [BLOCK_M, BLOCK_N]
    if D_HI > 0:
        k_hi = _load_2d(k_base, k_offsets, D_LO + tl.arange(0, D_HI)[:, None], is_key[None, :], HEAD_DIM, MASKED)
        if KV_FLOAT8:
            k_hi = read_float8(k_hi, NATIVE_FLOAT8).to(q_lo.dtype)
        scores += _product(q_hi, k_hi, UPCAST, PRECISION)
    if HAS_SOFT_CAP:
        # tanh(x) = 1 - 2 / (e^(2x) + 1), correct at both infinities
        scores = soft_cap - 2 * soft_cap / (tl.exp2(scores * (scale * 2 * LOG2_E / soft_cap)) + 1)
        factor = LOG2_E
    else:
        factor = scale * LOG2_E
    if MASKED:
        is_seen = (position[None, :] <= line_last[:, None]) & (position[None, :] >= line_first[:, None])
        scores = tl.where(is_seen & is_key[None, :], scores, float("-inf"))
    # The factor is positive, so the largest score is still the largest; scaling and subtracting are one instruction.
    new_top = tl.maximum(top, tl.max(scores, axis=1) * factor)
    if MASKED:
        base = tl.where(new_top == float("-inf"), 0.0, new_top)  # no visible key so far
    else:
        base = new_top
    weights = tl.exp2(scores * factor - base[:, None])
    shrink = tl.exp2(top - base)
    total = total * shrink + tl.sum(weights, axis=1)
    if LATENT:
        v_lo = tl.trans(k_lo)
    else:
        v_lo = _load_2d(v_base, v_offsets, tl.arange(0, V_LO)[None, :], is_key[:, None], V_HEAD_DIM, MASKED)
        if KV_FLOAT8:
            v_lo = read_float8(v_lo, NATIVE_FLOAT8).to(q_lo.dtype)
    if not UPCAST:
        weights = weights.to(v_lo.dtype)
    acc_lo = acc_lo * shrink[:, None] + _product(weights, v_lo, UPCAST, PRECISION)
    if V_HI > 0:
        v_hi = _load_2d(v_base, v_offsets, V_LO + tl.arange(0, V_HI)[None, :], is_key[:, None], V_HEAD_DIM, MASKED)
        if KV_FLOAT8:
            v_hi = read_float8(v_hi, NATIVE_FLOAT8).to(q_lo.dtype)
        acc_hi = acc_hi * shrink[:, None] + _product(weights, v_hi, UPCAST, PRECISION)
    return new_top, total, acc_lo, acc_hi


@jit
def rect_attn(
    q: tl.tensor,
    k_pool: tl.tensor,
    v_pool: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    partial_out: tl.tensor,
    partial_lse: tl.tensor,
    sinks: tl.tensor,
    items: tl.tensor,
    header: tl.tensor,
    page_table: tl.tensor,
    positions: tl.tensor,
    first_visible: tl.tensor,
    q_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    scale: tl.tensor,
    soft_cap: tl.tensor,
    LINES_CLASS: tl.constexpr,
    PARTS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    V_HEAD_DIM: tl.constexpr,
    D_LO: tl.constexpr,
    D_HI: tl.constexpr,
    V_LO: tl.constexpr,
    V_HI: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    NUM_STAGES: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
    HAS_SOFT_CAP: tl.constexpr,
    HAS_SINKS: tl.constexpr,
    UPCAST: tl.constexpr,
    PRECISION: tl.constexpr,
    KV_FLOAT8: tl.constexpr,
    NATIVE_FLOAT8: tl.constexpr,
    LATENT: tl.constexpr,
    EARLY: tl.constexpr,
) -> None:
    """Compute the items of one class. Grid: at least (items of the class) * NUM_KV_HEADS * PARTS; surplus programs return.

    `header` holds the start of each class, the number of tokens to merge, and the width of the page table (`Schedule.header`).

    A line is (token, head of the group): line l of an item is its token l // GROUP; PARTS programs take BLOCK_M lines each. Programs with
    the same keys are adjacent, followed by the programs of the next KV head, whose keys are adjacent in memory.
    """
    if EARLY:
        wait_for_inputs()
    part = tl.program_id(0) % PARTS
    item_id = tl.load(header + LINES_CLASS) + tl.program_id(0) // (NUM_KV_HEADS * PARTS)
    kv_head = tl.program_id(0) // PARTS % NUM_KV_HEADS
    if item_id >= tl.load(header + LINES_CLASS + 1):
        return
    item = items + item_id * 8
    row, begin, end = tl.load(item), tl.load(item + 1), tl.load(item + 2)
    token_0, num_tokens, partial = tl.load(item + 3), tl.load(item + 4), tl.load(item + 5)
    full_lo, full_hi = tl.load(item + 6), tl.load(item + 7)
    if part * BLOCK_M >= num_tokens * GROUP:
        return
    table = page_table + row.to(tl.int64) * tl.load(header + TABLE_WIDTH)

    line = part * BLOCK_M + tl.arange(0, BLOCK_M)
    token = token_0 + tl.minimum(line // GROUP, num_tokens - 1)
    head = kv_head * GROUP + line % GROUP
    q_offsets = (token.to(tl.int64) * q_stride + head * HEAD_DIM)[:, None]
    is_asked = line < num_tokens * GROUP
    q_lo = _load_2d(q, q_offsets, tl.arange(0, D_LO)[None, :], is_asked[:, None], HEAD_DIM, True)
    q_hi = q_lo
    if D_HI > 0:
        q_hi = _load_2d(q, q_offsets, D_LO + tl.arange(0, D_HI)[None, :], is_asked[:, None], HEAD_DIM, True)
    line_last = tl.load(positions + token)
    line_first = tl.zeros([BLOCK_M], tl.int32)
    if HAS_WINDOW:
        line_first = tl.load(first_visible + token)

    k_base, v_base = k_pool + kv_head * HEAD_DIM, v_pool + kv_head * V_HEAD_DIM
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc_lo = tl.zeros([BLOCK_M, V_LO], tl.float32)
    acc_hi = tl.zeros([BLOCK_M, V_HI if V_HI > 0 else 1], tl.float32)

    num_full = tl.maximum(full_hi - full_lo, 0) // BLOCK_N
    # The pages of the next keys are loaded an iteration ahead. Otherwise the loads of keys depend on a load in the same iteration, on
    # which the compiler spends pipeline stages: three stages then buffer a single tile, and loading alternates with computing.
    page = _pages(table, full_lo, end, PAGE_SIZE, BLOCK_N)
    for index in tl.range(0, num_full, num_stages=NUM_STAGES):
        next_page = _pages(table, full_lo + (index + 1) * BLOCK_N, end, PAGE_SIZE, BLOCK_N)
        top, total, acc_lo, acc_hi = _attend(
            (top, total, acc_lo, acc_hi),
            q_lo,
            q_hi,
            k_base,
            v_base,
            page,
            full_lo + index * BLOCK_N,
            end,
            line_first,
            line_last,
            k_stride,
            v_stride,
            scale,
            soft_cap,
            HEAD_DIM,
            V_HEAD_DIM,
            D_LO,
            D_HI,
            V_LO,
            V_HI,
            PAGE_SIZE,
            BLOCK_N,
            HAS_SOFT_CAP,
            False,
            UPCAST,
            PRECISION,
            KV_FLOAT8,
            NATIVE_FLOAT8,
            LATENT,
        )
        page = next_page
    # the edges: [begin, left_end) before the full tiles, [right, end) after them
    left_end = tl.where(num_full > 0, full_lo, begin)
    right = left_end + num_full * BLOCK_N
    num_left = tl.cdiv(left_end - begin, BLOCK_N)
    num_edges = num_left + tl.cdiv(end - right, BLOCK_N)
    for index in tl.range(0, num_edges, num_stages=1):
        is_left = index < num_left
        edge = tl.where(is_left, begin + index * BLOCK_N, right + (index - num_left) * BLOCK_N)
        edge_end = tl.where(is_left, left_end, end)
        top, total, acc_lo, acc_hi = _attend(
            (top, total, acc_lo, acc_hi),
            q_lo,
            q_hi,
            k_base,
            v_base,
            _pages(table, edge, edge_end, PAGE_SIZE, BLOCK_N),
            edge,
            edge_end,
            line_first,
            line_last,
            k_stride,
            v_stride,
            scale,
            soft_cap,
            HEAD_DIM,
            V_HEAD_DIM,
            D_LO,
            D_HI,
            V_LO,
            V_HI,
            PAGE_SIZE,
            BLOCK_N,
            HAS_SOFT_CAP,
            True,
            UPCAST,
            PRECISION,
            KV_FLOAT8,
            NATIVE_FLOAT8,
            LATENT,
        )

    is_line = (
        line // GROUP < num_tokens
    )  # equal to `is_asked`; recomputed so that it occupies no registers during the loops
    found = total > 0
    line_lse = tl.where(found, top + tl.log2(tl.where(found, total, 1.0)), float("-inf"))
    line_lse = tl.where(total != total, total, line_lse)  # propagate NaN of a query
    share = 1.0 / tl.where(total == 0, 1.0, total)
    acc_lo, acc_hi = acc_lo * share[:, None], acc_hi * share[:, None]
    if partial >= 0:
        target = (partial + line // GROUP).to(tl.int64) * (NUM_KV_HEADS * GROUP) + head
        tl.store(partial_lse + target, line_lse, mask=is_line)
        _store(partial_out, target, acc_lo, acc_hi, is_line, V_HEAD_DIM, V_LO, V_HI)
    else:
        target = token.to(tl.int64) * (NUM_KV_HEADS * GROUP) + head
        if HAS_SINKS:
            sink = tl.load(sinks + head).to(tl.float32) * LOG2_E
            line_lse, kept = with_sink(line_lse, sink)
            acc_lo, acc_hi = (
                acc_lo * kept[:, None],
                acc_hi * kept[:, None],
            )  # rounded as `merge_parts` rounds a single part
        tl.store(lse + target, line_lse * LN_2, mask=is_line)
        _store(out, target, acc_lo, acc_hi, is_line, V_HEAD_DIM, V_LO, V_HI)


@jit
def _store(
    base: tl.tensor,
    target: tl.tensor,
    acc_lo: tl.tensor,
    acc_hi: tl.tensor,
    is_line: tl.tensor,
    V_HEAD_DIM: tl.constexpr,
    V_LO: tl.constexpr,
    V_HI: tl.constexpr,
) -> None:
    """Write the output of each line to row `target` of [*, V_HEAD_DIM], in the type of `base`."""
    dims = tl.arange(0, V_LO)[None, :]
    offsets = (target * V_HEAD_DIM)[:, None]
    element = base.dtype.element_ty
    tl.store(base + offsets + dims, acc_lo.to(element), mask=is_line[:, None] & (dims < V_HEAD_DIM))
    if V_HI > 0:
        dims = V_LO + tl.arange(0, V_HI)[None, :]
        tl.store(base + offsets + dims, acc_hi.to(element), mask=is_line[:, None] & (dims < V_HEAD_DIM))
