"""The compiled loop of CPU attention: decode, chunked prefill and shared prefixes in one kernel.

It runs the passes of `planning.attention_passes` one by one. A pass packs each block of 64 keys into scratch memory, once for all its
tokens and all heads of a KV head, and folds it into the state of every query line: products of query and keys, weights by 2**x, products of
weights and values (`codegen.attention.attention_vectors`; in matrix tiles `attention_tiles`). Reads of the next block are requested a few
cache lines at a time during the arithmetic.

Bytes of a pool of int8 are multiplied as bytes where the processor has such products (`attention_bytes`), else packing turns them into
numbers of the queries' type.

Scores are exponents to base 2. Keys of a block that no token of the pass sees are zeros, so that the contents of unused slots never reach
a sum. The loop is compiled once; the steps that depend on the head geometry are compiled for each and called by address.
"""

from __future__ import annotations

import threading
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from rtlang_kernels.cpu.codegen.attention import attention_tiles
from rtlang_kernels.cpu.codegen.attention import attention_vectors as vectors
from rtlang_kernels.cpu.codegen.attention.attention_bytes import WEIGHT_ROW
from rtlang_kernels.cpu.codegen.attention.page_vectors import (
    BLOCK,
    GROUP,
    PageForm,
    copy_line,
    pack_group,
    pack_values,
)
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.tile_vectors import HEIGHT, NO_TILES, close_tiles, work_bytes
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import processor
from rtlang_kernels.planning import attention_passes as fields

int64: Any = np.int64  # compiled code needs one type per scalar
uint64: Any = np.uint64
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
ZERO, ONE = np.float32(0.0), np.float32(1.0)
LINE = 64  # bytes of a cache line

# Entries of the int64 vector `layout`. First those of a layer: addresses, then bytes from token to token or slot to slot.
Q, K, V, RESULT, RESULT_LSE, Q_STRIDE, K_STRIDE, V_STRIDE, RESULT_STRIDE = range(9)
# Then those of the head geometry: numbers of heads, bytes of a head's query, result, key and value (of the pool), state; bytes of packed
# values of 16 keys; offsets in the scratch memory; addresses of machine code. RELEASE is 0 if FOLD uses vectors; PACK_VALUES is 0 if keys
# are always packed. Last, bytes from KV head to KV head of a slot: as many as a head has, or 0 if all are one that query heads share.
NUM_KV_HEADS, HEADS_PER_KV, QUERY_BYTES, HEAD_BYTES, K_BYTES, V_BYTES, STATE_BYTES, VALUE_GROUP = range(9, 17)
COPIES, COMING, KEYS, VALUES, ROOM, STATES = range(17, 23)
PACK, COPY, FOLD, CLEAR, MERGE, FINISH, RELEASE, PACK_VALUES = range(23, 31)
K_HEAD, V_HEAD = 31, 32
LAYOUT_FIELDS = 33

_INT, _FLOAT = types.int64, types.float32
ATTEND_TYPES = (
    types.Array(_INT, 1, "C"),
    _FLOAT,
    _FLOAT,
    types.Array(_FLOAT, 1, "C"),
    types.Array(types.int32, 2, "C"),
    _INT,
    types.Array(types.int32, 2, "C"),
    types.Array(types.int32, 1, "C"),
    types.Array(types.int32, 1, "C"),
    _INT,
    _INT,
    _INT,
    _INT,
)


def lines_of(group: int) -> int:
    """Query lines of one call of the vector code: even shares of the group, as many as registers hold sums for."""
    most = 7 if processor().has_avx512 else 1
    return -(-group // -(-group // most))


def scratch_bytes(layout: NDArray[np.int64], num_lines: int) -> int:
    """Bytes of working memory for one call of the kernel with states for `num_lines` query lines, alignment included."""
    return int(LINE + layout[STATES] + num_lines * layout[STATE_BYTES])


@cache
def geometry(form: PageForm, num_kv_heads: int, group: int, tiles: int = NO_TILES) -> NDArray[np.int64]:
    """The layout of a head geometry, without the entries of a layer; compiles its kernels.

    Args:
        group: query heads per KV head.  tiles: kind of matrix tiles (`tile_vectors`); if any, the form must fit them.
    """
    head_dim, v_head_dim, lines = form.head_dim, form.v_head_dim, lines_of(group)
    layout = np.zeros(LAYOUT_FIELDS, np.int64)
    k_bytes, v_bytes = form.head_bytes(head_dim), form.head_bytes(v_head_dim)
    layout[NUM_KV_HEADS : VALUE_GROUP + 1] = (
        num_kv_heads,
        group,
        head_dim * form.item,
        v_head_dim * form.item,
        k_bytes,
        v_bytes,
        form.state_bytes,
        form.value_bytes * GROUP // BLOCK,
    )
    zeros, copies = max(k_bytes, v_bytes), BLOCK * k_bytes + GROUP * v_bytes
    room = _tile_room(form, tiles)[-1] if tiles else 8 * BLOCK * lines
    offset = 0
    for place, size in zip(
        range(COPIES, STATES + 1),
        (zeros, copies, 3 * LINE, form.key_bytes, form.value_bytes, room),
        strict=True,
    ):
        offset += -(-size // LINE) * LINE
        layout[place] = offset
    layout[K_HEAD], layout[V_HEAD] = k_bytes, v_bytes
    layout[PACK : FINISH + 1] = _code(form, group, lines, tiles == NO_TILES)
    if tiles:
        layout[FOLD], layout[RELEASE], layout[PACK_VALUES] = _tile_code(form, group, tiles)
    return layout


def _tile_room(form: PageForm, tiles: int) -> tuple[int, ...]:
    """Offsets in ROOM of the scores, weights and queries of a tile of lines, behind the memory of the tiles, and the size of all."""
    sizes = attention_tiles.SCORE_BYTES, attention_tiles.WEIGHT_BYTES, form.head_dim * form.item
    return tuple(accumulate((work_bytes(tiles), *(HEIGHT * size for size in sizes))))


def _code(form: PageForm, group: int, lines: int, folds: bool) -> tuple[int, ...]:
    """Addresses of the kernels of one head geometry: PACK to FINISH; FOLD is 0 unless `folds`."""
    digest = source_digest()
    kind, item, head_dim, v_head_dim = form.kind, form.item, form.head_dim, form.v_head_dim
    state_bytes, rest = form.state_bytes, group % lines
    rest_lines = max(rest, 1)
    weights_offset = 4 * BLOCK * lines
    row_bytes = WEIGHT_ROW if form.is_bytes else (2 if form.is_paired else 4) * BLOCK
    is_bytes = int(form.is_bytes)
    keys_per_step = BLOCK // form.value_steps
    k_scales = form.scales
    v_scales = k_scales + 4 * BLOCK
    unit = 2 if form.is_int8 else item  # bytes in which heads of the pool are copied
    k_units, v_units = form.head_bytes(head_dim) // unit, form.head_bytes(v_head_dim) // unit
    k_lines, v_lines = (form.num_requests(size) for size in (head_dim, v_head_dim))

    @kernel(is_exact=True)
    def pack(keys: Any, values: Any, k_stride: Any, v_stride: Any, key_target: Any, value_target: Any) -> None:
        if digest >= 0:  # always true; ties the disk cache to the sources
            pack_group(keys, values, k_stride, v_stride, key_target, value_target, kind, head_dim, v_head_dim)

    @kernel(is_exact=True)
    def copy(key: Any, value: Any, key_target: Any, value_target: Any) -> None:
        if digest >= 0:
            copy_line(key, key_target, unit, k_units)
            copy_line(value, value_target, unit, v_units)

    @kernel(is_exact=True)
    def clear(state: Any, count: Any) -> None:
        if digest >= 0:
            for i in range(count):
                vectors.clear(state + i * state_bytes, v_head_dim, kind)

    @kernel(is_exact=True)
    def merge(state: Any, source: Any, count: Any) -> None:
        if digest >= 0:
            for i in range(count):
                vectors.merge(state + i * state_bytes, source + i * state_bytes, v_head_dim, kind)

    @kernel(is_exact=True)
    def finish(state: Any, target: Any, lse: Any, sinks: Any, count: Any) -> None:
        """Write `count` heads of a token. sinks: address of their float32 logits, or 0."""
        if digest < 0:
            return
        for i in range(count):
            here = state + i * state_bytes
            mass, peak = vectors.mass_of(here, v_head_dim, kind), vectors.peak_of(here, v_head_dim, kind)
            share = ONE
            if sinks:
                level = vectors.float_at(sinks + 4 * i) * LOG2_E
                top = max(peak, level)
                share = np.exp2(peak - top)
                mass, peak = mass * share + np.exp2(level - top), top
            vectors.put_line(here, target + i * v_head_dim * item, share / mass, kind, v_head_dim)
            vectors.put_float(lse + 4 * i, peak * LN_2 + np.log(mass))

    @kernel(is_exact=True)
    def fold(
        query: Any,
        keys: Any,
        values: Any,
        scores: Any,
        state: Any,
        coming: Any,
        low: Any,
        high: Any,
        factor: Any,
        slope: Any,
        limit: Any,
    ) -> None:
        """Fold the keys [low, high) of a block into the heads of a KV head of one token. slope, limit: of a cap, limit 0 for none."""
        if digest < 0:
            return
        weights = scores + weights_offset
        visible = int64(((ALL >> uint64(BLOCK - high)) >> uint64(low)) << uint64(low))
        first_group, last_group = low // GROUP, (high + GROUP - 1) // GROUP
        step, last_step = low // keys_per_step, (high + keys_per_step - 1) // keys_per_step
        after = coming + 40 if coming else coming
        for head in range(0, group - rest, lines):
            here, there = query + head * head_dim * item, state + head * state_bytes
            for i in range(lines):
                vectors.prepare(here + i * head_dim * item, there + i * state_bytes, kind, head_dim, v_head_dim)
            if is_bytes:
                here = there
            if last_group - first_group > 2:
                vectors.score(here, keys, scores, coming, kind, head_dim, v_head_dim, lines, 4, k_lines)
            else:
                for g in range(first_group, last_group):
                    part, target = keys + 64 * g, scores + 64 * g
                    vectors.score(here, part, target, coming, kind, head_dim, v_head_dim, lines, 1, k_lines)
            for i in range(lines):
                line = scores + 4 * BLOCK * i
                vectors.scale_scores(line, keys + k_scales, kind)
                if limit > ZERO:
                    vectors.cap(line, slope, limit)
                own, scales = there + i * state_bytes, keys + v_scales
                vectors.weigh(line, weights + row_bytes * i, own, scales, factor, visible, kind, v_head_dim)
            vectors.gather(there, values, weights, step, last_step, after, kind, head_dim, v_head_dim, lines, v_lines)
            coming, after = int64(0), int64(0)
        if rest:
            there = state + (group - rest) * state_bytes
            here = query + (group - rest) * head_dim * item
            for i in range(rest):
                vectors.prepare(here + i * head_dim * item, there + i * state_bytes, kind, head_dim, v_head_dim)
            if is_bytes:
                here = there
            vectors.score(here, keys, scores, coming, kind, head_dim, v_head_dim, rest_lines, 4, k_lines)
            for i in range(rest):
                line = scores + 4 * BLOCK * i
                vectors.scale_scores(line, keys + k_scales, kind)
                if limit > ZERO:
                    vectors.cap(line, slope, limit)
                own, scales = there + i * state_bytes, keys + v_scales
                vectors.weigh(line, weights + row_bytes * i, own, scales, factor, visible, kind, v_head_dim)
            vectors.gather(
                there, values, weights, step, last_step, after, kind, head_dim, v_head_dim, rest_lines, v_lines
            )

    steps = (
        (pack, (_INT,) * 6),
        (copy, (_INT,) * 4),
        (fold, (*(_INT,) * 8, *(_FLOAT,) * 3)),
        (clear, (_INT,) * 2),
        (merge, (_INT,) * 3),
        (finish, (_INT,) * 5),
    )
    _KEPT.extend(compiled for compiled, _ in steps)
    return tuple(address_of(*step) if folds or step[0] is not fold else 0 for step in steps)


def _tile_code(form: PageForm, group: int, tiles: int) -> tuple[int, int, int]:
    """Addresses of the kernels of a head geometry in matrix tiles: FOLD, RELEASE and PACK_VALUES, which is 0 with a pool of int8."""
    digest = source_digest()
    kind, head_dim, v_head_dim, state_bytes = form.kind, form.head_dim, form.v_head_dim, form.state_bytes
    query_bytes = head_dim * form.item
    k_lines, v_lines = (max(1, form.head_bytes(size) // LINE) for size in (head_dim, v_head_dim))
    query_words, word = query_bytes // 4, 4
    k_scales = form.scales
    v_scales = k_scales + 4 * BLOCK
    scores_at, weights_at, queries_at, _ = _tile_room(form, tiles)
    score_bytes, weight_bytes = attention_tiles.SCORE_BYTES, attention_tiles.WEIGHT_BYTES

    @kernel(is_exact=True)
    def fold_tiles(
        query: Any,
        query_stride: Any,
        keys: Any,
        is_one: Any,
        values: Any,
        room: Any,
        state: Any,
        coming: Any,
        num_tokens: Any,
        positions: Any,
        first_visible: Any,
        start: Any,
        last_key: Any,
        factor: Any,
        slope: Any,
        limit: Any,
    ) -> None:
        """Fold a block into the heads of a KV head of all tokens that see some of it. slope, limit: of a cap, limit 0 for none.

        keys: packed; with `is_one`, for a single line, the sources of `attention_tiles.score_one`.
        positions, first_visible: addresses. start, last_key: position of the block, and end of the keys of the pass.
        """
        if digest < 0:
            return
        scores, weights, queries = room + scores_at, room + weights_at, room + queries_at
        after = coming + 40 if coming else coming
        token = int64(0)
        while token < num_tokens:
            end = token
            while end < num_tokens:
                low, high = _span(positions, first_visible, end, start, last_key)
                if high <= low:
                    break
                end += 1
            if end == token:
                token += 1
                continue
            num_lines = (end - token) * group  # whose states follow one another
            num_tiles = (num_lines + HEIGHT - 1) // HEIGHT
            height = (num_lines + num_tiles - 1) // num_tiles
            first_state, head = state + token * group * state_bytes, int64(0)
            for first in range(0, num_lines, height):
                lines = min(height, num_lines - first)
                own, own_head = token, head
                for i in range(lines):
                    here = query + own * query_stride + own_head * query_bytes
                    copy_line(here, queries + i * query_bytes, word, query_words)
                    own_head += 1
                    if own_head == group:
                        own, own_head = own + 1, int64(0)
                if is_one:
                    attention_tiles.set_one(room, tiles)
                    attention_tiles.score_one(queries, keys, scores, coming, room, tiles, head_dim, k_lines)
                else:
                    attention_tiles.set_height(room, lines, tiles)
                    attention_tiles.score(queries, keys, scores, coming, room, tiles, head_dim, k_lines)
                there = first_state + first * state_bytes
                for i in range(lines):
                    low, high = _span(positions, first_visible, token, start, last_key)
                    visible = int64(((ALL >> uint64(BLOCK - high)) >> uint64(low)) << uint64(low))
                    line = scores + score_bytes * i
                    vectors.scale_scores(line, keys + k_scales, kind)
                    if limit > ZERO:
                        vectors.cap(line, slope, limit)
                    own_state, scales = there + i * state_bytes, keys + v_scales
                    vectors.weigh(
                        line, weights + weight_bytes * i, own_state, scales, factor, visible, kind, v_head_dim
                    )
                    head += 1
                    if head == group:
                        token, head = token + 1, int64(0)
                if is_one:
                    attention_tiles.gather(there, values, weights, after, room, tiles, v_head_dim, v_lines, 1)
                else:
                    attention_tiles.gather(there, values, weights, after, room, tiles, v_head_dim, v_lines, 0)
                coming, after = int64(0), int64(0)

    @kernel(is_exact=True)
    def release(room: Any) -> None:
        if digest >= 0:
            close_tiles(room, tiles)

    @kernel(is_exact=True)
    def pack_values_only(values: Any, stride: Any, target: Any) -> None:
        if digest >= 0:
            pack_values(values, stride, target, kind, v_head_dim)

    steps = ((fold_tiles, (*(_INT,) * 13, *(_FLOAT,) * 3)), (release, (_INT,)), (pack_values_only, (_INT,) * 3))
    _KEPT.extend(compiled for compiled, _ in steps)
    fold, end, pack = (address_of(*step) for step in steps)
    return fold, end, 0 if form.is_int8 else pack


@kernel()
def _span(positions: Any, first_visible: Any, token: Any, start: Any, last_key: Any) -> Any:
    """The keys [low, high) of the block at `start` that a token sees; addresses of int32."""
    low = max(attention_tiles.int32_at(first_visible + 4 * token) - start, int64(0))
    high = min(attention_tiles.int32_at(positions + 4 * token) + 1, last_key) - start
    return low, min(high, int64(BLOCK))


_KEPT: list[Any] = []  # kernels whose addresses are in use


@kernel()
def slot_of(page_table: Any, page_size: Any, row: Any, position: Any) -> Any:
    """The slot of one position of a row."""
    return int64(page_table[row, position // page_size]) * page_size + position % page_size


@kernel()
def attend(
    layout: Any,
    scale: Any,
    soft_cap: Any,
    sinks: Any,
    page_table: Any,
    page_size: Any,
    passes: Any,
    positions: Any,
    first_visible: Any,
    num_slots: Any,
    kv_first: Any,
    kv_last: Any,
    scratch: Any,
) -> None:
    """Run passes for a range of KV heads.

    Args:
        layout: from `geometry`, with the entries of a layer.  scale, soft_cap (0 for none): float32.
        sinks: float32 [num_q_heads] or empty.  page_table, page_size: as in the plan.
        passes: int32 [n, PASS_FIELDS].  positions, first_visible: int32 [num_tokens].  num_slots: as `plan_passes` returns it.
        kv_first, kv_last: range of KV heads.  scratch: address of `scratch_bytes` bytes.
    """
    group, k_bytes, v_bytes = layout[HEADS_PER_KV], layout[K_BYTES], layout[V_BYTES]
    k_head, v_head = layout[K_HEAD], layout[V_HEAD]
    query_bytes, head_bytes = layout[QUERY_BYTES], layout[HEAD_BYTES]
    state_bytes, value_group = layout[STATE_BYTES], layout[VALUE_GROUP]
    base = (scratch + LINE - 1) // LINE * LINE
    copies, coming, keys, values = (
        base + layout[COPIES],
        base + layout[COMING],
        base + layout[KEYS],
        base + layout[VALUES],
    )
    room, states = base + layout[ROOM], base + layout[STATES]
    k_copies, v_copy = copies, copies + BLOCK * k_bytes
    sources = coming + 2 * LINE
    for place in range(base, copies, 8):
        vectors.put_int(place, int64(0))
    k_stride, v_stride = layout[K_STRIDE], layout[V_STRIDE]
    num_kv = kv_last - kv_first
    slot_bytes = group * state_bytes
    kv_bytes = num_slots * slot_bytes  # states are ordered by KV head, slot and head
    uses_tiles = layout[RELEASE] != 0
    if uses_tiles:
        for place in range(room, room + LINE, 8):
            vectors.put_int(place, int64(0))  # no configuration
    vectors.put_int(coming + 32, k_stride)
    vectors.put_int(coming + 72, v_stride)
    factor, slope, limit = scale * LOG2_E, ZERO, soft_cap * LOG2_E
    if limit > ZERO:
        factor, slope = ONE, scale / soft_cap
    for index in range(len(passes)):
        entry = passes[index]
        first_token, last_token, row = (
            int64(entry[fields.TOKEN]),
            int64(entry[fields.TOKEN_END]),
            int64(entry[fields.ROW]),
        )
        first_key, last_key = int64(entry[fields.FIRST_KEY]), int64(entry[fields.LAST_KEY])
        first_state = states + entry[fields.SLOT] * slot_bytes
        state = first_state + entry[fields.IS_SECOND] * num_kv * kv_bytes
        num_tokens = last_token - first_token
        num_lines = num_tokens * group  # of a KV head
        if entry[fields.IS_FIRST]:
            for own in range(num_kv):
                invoke(layout[CLEAR], (state + own * kv_bytes, num_lines))
        is_one = layout[PACK_VALUES] != 0 and num_lines == 1  # keys are read once, so they are not packed
        first_block = first_key // BLOCK
        num_blocks = (last_key + BLOCK - 1) // BLOCK - first_block
        is_wide = num_lines * num_kv > 64  # KV head by KV head, so that the states of one stay in the cache
        num_turns = num_blocks * num_kv
        kv, block = int64(0), int64(0)
        for turn in range(num_turns):
            start, local = (first_block + block) * BLOCK, kv
            k_base, v_base = layout[K] + (kv_first + kv) * k_head, layout[V] + (kv_first + kv) * v_head
            for g in range(4):
                position = start + GROUP * g
                targets = keys + 4 * GROUP * g, values + value_group * g
                if position >= last_key or position + GROUP <= first_key:
                    if is_one:
                        vectors.put_int(sources + 8 * g, base)
                        vectors.put_int(sources + 8 * g + 32, int64(0))
                        invoke(layout[PACK_VALUES], (base, int64(0), targets[1]))
                    elif uses_tiles:  # they multiply all values
                        invoke(layout[PACK], (base, base, int64(0), int64(0), targets[0], targets[1]))
                    continue
                here = slot_of(page_table, page_size, row, max(position, first_key))
                k_source, v_source, k_step, v_step = (
                    k_base + here * k_stride,
                    v_base + here * v_stride,
                    k_stride,
                    v_stride,
                )
                if page_size % GROUP or position < first_key or position + GROUP > last_key:
                    k_copy = k_copies + g * GROUP * k_bytes
                    for i in range(GROUP):  # side by side, zeros where no token sees them
                        k_place, v_place = base, base
                        if first_key <= position + i and position + i < last_key:
                            here = slot_of(page_table, page_size, row, position + i)
                            k_place, v_place = k_base + here * k_stride, v_base + here * v_stride
                        invoke(layout[COPY], (k_place, v_place, k_copy + i * k_bytes, v_copy + i * v_bytes))
                    k_source, v_source, k_step, v_step = k_copy, v_copy, k_bytes, v_bytes
                if is_one:
                    vectors.put_int(sources + 8 * g, k_source)
                    vectors.put_int(sources + 8 * g + 32, k_step)
                    invoke(layout[PACK_VALUES], (v_source, v_step, targets[1]))
                else:
                    invoke(layout[PACK], (k_source, v_source, k_step, v_step, targets[0], targets[1]))
            # Addresses of the block that comes next.
            if is_wide:
                block += 1
                if block == num_blocks:
                    kv, block = kv + 1, int64(0)
            else:
                kv += 1
                if kv == num_kv:
                    kv, block = int64(0), block + 1
            next_row, next_start, next_last, next_kv = row, (first_block + block) * BLOCK, last_key, kv
            ahead = coming
            if turn + 1 == num_turns:
                next_kv = int64(0)
                if index + 1 < len(passes):
                    following = passes[index + 1]
                    next_row, next_last = int64(following[fields.ROW]), int64(following[fields.LAST_KEY])
                    next_start = following[fields.FIRST_KEY] // BLOCK * BLOCK
                else:
                    ahead = int64(0)
            if ahead:
                next_kv += kv_first
                highest = (next_last - 1) // GROUP * GROUP
                for g in range(4):
                    there = slot_of(page_table, page_size, next_row, min(next_start + GROUP * g, highest))
                    vectors.put_int(coming + 8 * g, layout[K] + there * k_stride + next_kv * k_head)
                    vectors.put_int(coming + 8 * g + 40, layout[V] + there * v_stride + next_kv * v_head)
            # Fold the block into the lines of every token that sees some of it.
            kv_state = state + local * kv_bytes
            query = layout[Q] + (kv_first + local) * group * query_bytes
            if uses_tiles:
                invoke(
                    layout[FOLD],
                    (
                        query + first_token * layout[Q_STRIDE],
                        layout[Q_STRIDE],
                        sources if is_one else keys,
                        int64(is_one),
                        values,
                        room,
                        kv_state,
                        ahead,
                        num_tokens,
                        int64(positions.ctypes.data) + 4 * first_token,
                        int64(first_visible.ctypes.data) + 4 * first_token,
                        start,
                        last_key,
                        factor,
                        slope,
                        limit,
                    ),
                )
                continue
            for token in range(first_token, last_token):
                low = max(int64(first_visible[token]) - start, int64(0))
                high = min(int64(positions[token]) + 1, last_key) - start
                high = min(high, int64(BLOCK))
                if high <= low:
                    continue
                here, line = query + token * layout[Q_STRIDE], kv_state + (token - first_token) * slot_bytes
                invoke(layout[FOLD], (here, keys, values, room, line, ahead, low, high, factor, slope, limit))
                ahead = int64(0)
        if entry[fields.ENDS_SEGMENT]:
            for own in range(num_kv):
                invoke(layout[MERGE], (first_state + own * kv_bytes, state + own * kv_bytes, num_lines))
        if entry[fields.IS_LAST]:
            all_heads = layout[NUM_KV_HEADS] * group
            for own in range(num_kv):
                head = (kv_first + own) * group
                sink = int64(sinks.ctypes.data) + 4 * head if len(sinks) else int64(0)
                for token in range(first_token, last_token):
                    here = first_state + own * kv_bytes + (token - first_token) * slot_bytes
                    target = layout[RESULT] + token * layout[RESULT_STRIDE] + head * head_bytes
                    lse = layout[RESULT_LSE] + 4 * (token * all_heads + head)
                    invoke(layout[FINISH], (here, target, lse, sink, group))
    if uses_tiles:
        invoke(layout[RELEASE], (room,))


_compiling = threading.Lock()  # `cache` lets two threads make the same


@cache
def attend_kernel() -> Any:
    """The compiled loop."""
    compiled: Any = attend
    with _compiling:
        if not compiled.signatures:
            compiled.compile(ATTEND_TYPES)
            compiled.disable_compile()  # calls by address are not type-checked
    return compiled
