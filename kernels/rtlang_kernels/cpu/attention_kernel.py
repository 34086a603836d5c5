"""The compiled pass of CPU attention: handles private keys, and merges all partial results, in one pass over the tokens.

For each token the kernel merges the partial results of its dense calls (output and log-sum-exp), then attends to the token's own segments
of positions directly in the pages, 64 keys at a time with an online softmax, and writes the final output and log-sum-exp. Head counts and
sizes are compile-time constants of `attend_kernel`; the inner steps are in `codegen.attention_vectors`.

Scores are exponents to base 2. A chunk is short enough for its K and V to stay in the first-level cache while all heads read them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rtlang_kernels.cpu.codegen import attention_vectors
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.codegen.vector_builder import Lanes
from rtlang_kernels.host.numba_jit import kernel

int64: Any = np.int64  # compiled code needs one type per scalar
CHUNK = 64
NEGATIVE_INFINITY = np.float32(-np.inf)
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
ZERO, ONE = np.float32(0.0), np.float32(1.0)

# Fields of the int64 table of dense calls: addresses, first token, strides in bytes of output and log-sum-exp.
OUT, LSE, FIRST_TOKEN, OUT_TOKEN, OUT_KV, OUT_GROUP, LSE_TOKEN, LSE_KV, LSE_GROUP = range(9)
CALL_FIELDS = 9
# Entries of the int64 vector `layout`: addresses of one layer's tensors, then strides in bytes from token to token or slot to slot.
Q, K, V, RESULT, RESULT_LSE, Q_STRIDE, K_STRIDE, V_STRIDE, RESULT_STRIDE = range(9)
LAYOUT_FIELDS = 9


def scratch_floats(num_q_heads: int, head_dim: int, v_head_dim: int) -> int:
    """Number of float32 elements of working memory for one call of the kernel."""
    return num_q_heads * (head_dim + v_head_dim + 2 + CHUNK)


def _tile(group: int, limit: int) -> int:
    """The largest divisor of `group` that is at most `limit`, at least 1."""
    return max(heads for heads in range(1, group + 1) if group % heads == 0 and (heads == 1 or heads <= limit))


@cache
def attend_kernel(is_bf16: int, num_kv_heads: int, group: int, head_dim: int, v_head_dim: int) -> Callable[..., None]:
    """Compile the kernel for one element type (is_bf16 0 or 1) and head geometry.

    Args of the kernel:
        layout: see above.  scale, soft_cap (0 for none): float32.  sinks: float32 [num_q_heads] or empty.
        page_table, page_size: as in the plan.  token_row: int32 [num_tokens].
        segment_start: int32 [num_tokens + 1], rows of `segments` int32 [n, 2]: ranges of positions.
        partial_start: int32 [num_tokens + 1], entries of `partial_call` int32: rows of `calls` int64 [n, CALL_FIELDS].
        first, last: range of tokens.  scratch: float32 [scratch_floats(...)].  slots: int64 [2, CHUNK].
    """
    digest = source_digest()
    num_q_heads = num_kv_heads * group
    item = 2 if is_bf16 else 4
    width = Lanes(bool(is_bf16), head_dim).width  # keys of one block of scores
    score_heads = _tile(group, 512 // head_dim)
    gather_heads = _tile(group, 256 // v_head_dim)  # running sums of one tile stay in registers

    @kernel()
    def attend(
        layout: Any,
        scale: Any,
        soft_cap: Any,
        sinks: Any,
        page_table: Any,
        page_size: Any,
        token_row: Any,
        segment_start: Any,
        segments: Any,
        partial_start: Any,
        partial_call: Any,
        calls: Any,
        first: Any,
        last: Any,
        scratch: Any,
        slots: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        query = int64(scratch.ctypes.data)
        state = query + 4 * num_q_heads * head_dim  # sums of 2**(score - peak) * value
        scores = state + 4 * num_q_heads * v_head_dim
        peak = scratch[num_q_heads * (head_dim + v_head_dim + CHUNK) :]
        mass = peak[num_q_heads:]
        weights = scratch[num_q_heads * (head_dim + v_head_dim) :]
        k_slots = int64(slots.ctypes.data)
        v_slots = k_slots + 8 * CHUNK
        factor = scale * LOG2_E
        for token in range(first, last):
            for h in range(num_q_heads):
                line = layout[Q] + token * layout[Q_STRIDE] + h * head_dim * item
                attention_vectors.load_scaled(line, query + 4 * h * head_dim, factor, is_bf16, head_dim)
                attention_vectors.clear(state + 4 * h * v_head_dim, v_head_dim)
                peak[h] = sinks[h] * LOG2_E if len(sinks) else NEGATIVE_INFINITY
                mass[h] = ONE if len(sinks) else ZERO
            for part in range(partial_start[token], partial_start[token + 1]):
                call = calls[partial_call[part]]
                local = token - call[FIRST_TOKEN]
                for h in range(num_q_heads):
                    kv, g = h // group, h % group
                    at = call[LSE] + local * call[LSE_TOKEN] + kv * call[LSE_KV] + g * call[LSE_GROUP]
                    level = attention_vectors.float_at(at) * LOG2_E
                    top = max(peak[h], level)
                    old = np.exp2(peak[h] - top) if mass[h] > ZERO else ZERO
                    new = np.exp2(level - top)
                    line = call[OUT] + local * call[OUT_TOKEN] + kv * call[OUT_KV] + g * call[OUT_GROUP]
                    attention_vectors.blend(state + 4 * h * v_head_dim, old, line, new, is_bf16, v_head_dim)
                    mass[h] = mass[h] * old + new
                    peak[h] = top
            row = token_row[token]
            for segment in range(segment_start[token], segment_start[token + 1]):
                position, stop = int64(segments[segment, 0]), int64(segments[segment, 1])
                ahead = position
                while position < stop:
                    count = min(CHUNK, stop - position)
                    while ahead < min(position + 2 * CHUNK, stop):  # prefetch the next chunk
                        slot = int64(page_table[row, ahead // page_size]) * page_size + ahead % page_size
                        for byte in range(0, num_kv_heads * head_dim * item, 64):
                            attention_vectors.prefetch(layout[K] + slot * layout[K_STRIDE] + byte)
                        for byte in range(0, num_kv_heads * v_head_dim * item, 64):
                            attention_vectors.prefetch(layout[V] + slot * layout[V_STRIDE] + byte)
                        ahead += 1
                    i = 0
                    while i < count:
                        page, offset = (position + i) // page_size, (position + i) % page_size
                        slot = int64(page_table[row, page]) * page_size + offset
                        for _ in range(min(page_size - offset, count - i)):
                            slots[0, i] = slot * layout[K_STRIDE]
                            slots[1, i] = slot * layout[V_STRIDE]
                            slot += 1
                            i += 1
                    padded = (count + 15) // 16 * 16
                    for i in range(count, padded):  # padding: read like a key, but with weight 0
                        slots[0, i] = slots[0, count - 1]
                        slots[1, i] = slots[1, count - 1]
                    for kv in range(num_kv_heads):
                        keys = layout[K] + kv * head_dim * item
                        values = layout[V] + kv * v_head_dim * item
                        h = kv * group
                        for g in range(0, group, score_heads):
                            line = query + 4 * (h + g) * head_dim
                            for i in range(0, padded, width):
                                target = scores + 4 * ((h + g) * CHUNK + i)
                                attention_vectors.score(
                                    line, keys, k_slots + 8 * i, target, is_bf16, head_dim, score_heads, CHUNK
                                )
                        for _ in range(group):
                            here = scores + 4 * h * CHUNK
                            if soft_cap > ZERO:
                                for i in range(0, padded, 16):
                                    attention_vectors.cap(here + 4 * i, soft_cap * LOG2_E, 16)
                            for i in range(count, padded):
                                weights[h * CHUNK + i] = NEGATIVE_INFINITY
                            top = peak[h]
                            for i in range(0, padded, 16):
                                top = max(top, attention_vectors.largest(here + 4 * i, 16))
                            total = ZERO
                            for i in range(0, padded, 16):
                                total += attention_vectors.weigh(here + 4 * i, top, 16)
                            old = np.exp2(peak[h] - top) if mass[h] > ZERO else ZERO
                            if old != ONE:
                                here = state + 4 * h * v_head_dim
                                attention_vectors.load_scaled(here, here, old, 0, v_head_dim)
                            mass[h] = mass[h] * old + total
                            peak[h] = top
                            h += 1
                        h = kv * group
                        for g in range(0, group, gather_heads):
                            line = state + 4 * (h + g) * v_head_dim
                            for i in range(0, padded, 16):
                                source = scores + 4 * ((h + g) * CHUNK + i)
                                attention_vectors.gather(
                                    line, values, v_slots + 8 * i, source, is_bf16, v_head_dim, 16, gather_heads, CHUNK
                                )
                    position += count
            for h in range(num_q_heads):
                inverse = ONE / mass[h] if mass[h] != ZERO else ZERO
                line = layout[RESULT] + token * layout[RESULT_STRIDE] + h * v_head_dim * item
                attention_vectors.store_scaled(state + 4 * h * v_head_dim, line, inverse, is_bf16, v_head_dim)
                value = peak[h] * LN_2 + np.log(mass[h])
                attention_vectors.put_float(layout[RESULT_LSE] + 4 * (token * num_q_heads + h), value)

    return attend
