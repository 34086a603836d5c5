"""The gated recurrence, token by token over blocks of value lanes that stay in the first cache. The contract is in `ops.py`.

An item is a row, a head and a block of lanes of its matrix; `matrix_vectors` has the arithmetic. A state is not copied: the first token
of a row reads it in its source slot, a token with a mark writes it into the slot of the mark, where the next token reads it, and other
tokens write it into working memory.

A chunked form (products of chunks as matrices) would need fewer passes over the block, but its sums depend on where chunks begin. Here a
token has the same bits in a prompt, in a decode step and in a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba.core import types
from torch import Tensor

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.cpu.codegen.llvm_bridge import source_digest
from rtlang_kernels.cpu.codegen.sampling_vectors import element_at
from rtlang_kernels.cpu.codegen.team_sync import fetch_add
from rtlang_kernels.cpu.recurrence.matrix_vectors import WIDTH, finished, prepared, swept
from rtlang_kernels.cpu.recurrence.state_vectors import zero_block
from rtlang_kernels.cpu.recurrence.state_work import PLAN_TYPES, plan_arrays, share_items
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.host.processor import processor
from rtlang_kernels.reference import recurrence as reference

ONE = np.float32(1.0)
_NS_PER_ELEMENT = 1 / 20  # 16 heads of 128 x 128 take 13 us a token on one thread
# Fields of the int64 layout: for each input its address and the bytes from token to token and from head to head; then the others.
Q, Q_STRIDE, Q_HEAD, K, K_STRIDE, K_HEAD, V, V_STRIDE, V_HEAD, DECAY, DECAY_STRIDE, DECAY_HEAD = range(12)
BETA, BETA_STRIDE, BETA_HEAD, OUT, OUT_STRIDE, STATES, STATE_STRIDE = range(12, 19)
NUM_HEADS, GROUP, K_DIM, V_DIM, IS_KEYED, IS_BETA_BF16 = range(19, 25)

_INT, _FLOAT, _INTS = types.int64, types.float32, types.Array(types.int64, 1, "C")
RECURRENCE_TYPES = (_INTS, _FLOAT, _FLOAT, *PLAN_TYPES, _INT, _INT, _INT)
"""numba types of the arguments of the kernel."""


@cache
def lanes_of(v_dim: int) -> int:
    """Lanes of a block: up to 128 with AVX-512, whose registers hold the sums and updates of as many; else up to 16.

    A block of 128 x 128 is in the second cache, but it is read from memory in order: with 16 heads whose states come from memory, one row
    takes 0.75 and eight rows take 0.65 of the time with 32 lanes, and prompts the same. Requesting the next block from memory ahead of its
    turn makes rows 1.2 times slower.
    """
    sizes = (128, 64, 32, 16, 8, 4, 2, 1) if processor().has_avx512 else (16, 8, 4, 2, 1)
    return next(size for size in sizes if v_dim % size == 0)


@cache
def recurrence_kernel(is_bf16: int, lanes: int, is_delta: int) -> Callable[..., None]:
    """Compile the recurrence for one element type of q, k, v and one size of blocks. It serves every geometry.

    Args of the kernel:
        layout: int64, see above.  scale, eps: float32; a negative eps leaves q and k as they are.
        order, cu_seqlens, sources, cu_marks, mark_ends, mark_slots: int32, see `state_work`.
        num_items, taken: number of rows * heads * blocks, and address of the number of them that threads took, 0 at first.
        scratch: address of `scratch_bytes` bytes, of this thread alone.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4
    line = 4 * lanes

    @kernel(is_exact=True)
    def recurrence(
        layout: Any,
        scale: Any,
        eps: Any,
        order: Any,
        cu_seqlens: Any,
        sources: Any,
        cu_marks: Any,
        mark_ends: Any,
        mark_slots: Any,
        num_items: Any,
        taken: Any,
        scratch: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        k_dim, v_dim, num_heads = layout[K_DIM], layout[V_DIM], layout[NUM_HEADS]
        num_blocks = v_dim // lanes
        size = 16 * ((k_dim + WIDTH - 1) // WIDTH * WIDTH)  # bytes of the lines of a token
        update, sums, block = scratch + 2 * size, scratch + 2 * size + line, scratch + 2 * size + 3 * line
        while True:
            place = fetch_add(taken, 1)
            if place >= num_items:
                return
            row = order[place // (num_heads * num_blocks)]
            head = place // num_blocks % num_heads
            own = head // layout[GROUP]
            first = np.int64(cu_seqlens[row])
            num_tokens = cu_seqlens[row + 1] - first
            q = layout[Q] + first * layout[Q_STRIDE] + own * layout[Q_HEAD]
            k = layout[K] + first * layout[K_STRIDE] + own * layout[K_HEAD]
            skip = place % num_blocks * lanes
            v = layout[V] + first * layout[V_STRIDE] + head * layout[V_HEAD] + skip * item
            decay = layout[DECAY] + first * layout[DECAY_STRIDE] + head * layout[DECAY_HEAD]
            beta = layout[BETA] + first * layout[BETA_STRIDE] + head * layout[BETA_HEAD]
            out = layout[OUT] + first * layout[OUT_STRIDE] + (head * v_dim + skip) * item
            states = layout[STATES] + 4 * (head * k_dim * v_dim + skip)
            now, coming = scratch, scratch + size
            mark, last_mark = cu_marks[row], cu_marks[row + 1]
            product = prepared(q, k, decay, layout[IS_KEYED], now, k_dim, scale, eps, is_bf16)
            if sources[row] >= 0:
                here, stride = states + sources[row] * layout[STATE_STRIDE], 4 * v_dim
                swept(here, stride, here, stride, now, update, now, sums, k_dim, lanes, 0, 1, is_delta)
            else:
                here, stride = block, np.int64(line)
                zero_block(block, k_dim, lanes)
                zero_block(sums, 2, lanes)
            for token in range(num_tokens):
                factor = ONE
                if layout[BETA]:
                    if layout[IS_BETA_BF16]:
                        factor = element_at(beta + token * layout[BETA_STRIDE], 1)
                    else:
                        factor = element_at(beta + token * layout[BETA_STRIDE], 0)
                value, result = v + token * layout[V_STRIDE], out + token * layout[OUT_STRIDE]
                finished(value, factor, product, sums, update, result, is_bf16, lanes, is_delta)
                target, width, is_last = block, np.int64(line), token + 1 == num_tokens
                if mark < last_mark and mark_ends[mark] == token + 1:
                    target, width = states + mark_slots[mark] * layout[STATE_STRIDE], 4 * v_dim
                    mark += 1
                elif is_last:
                    break
                if is_last:
                    swept(here, stride, target, width, now, update, now, sums, k_dim, lanes, 1, 0, is_delta)
                    break
                q += layout[Q_STRIDE]
                k += layout[K_STRIDE]
                decay += layout[DECAY_STRIDE]
                product = prepared(q, k, decay, layout[IS_KEYED], coming, k_dim, scale, eps, is_bf16)
                swept(here, stride, target, width, now, update, coming, sums, k_dim, lanes, 1, 1, is_delta)
                here, stride = target, width
                now, coming = coming, now

    return recurrence


def scratch_bytes(k_dim: int, lanes: int) -> int:
    """Working memory of a thread: the lines of two tokens, an update, two sums, and a block."""
    return 2 * 16 * (-(-k_dim // WIDTH) * WIDTH) + 4 * lanes * (3 + k_dim)


def gated_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor | None,
    states: Tensor,
    plan: StatePlan,
    scale: float,
    is_delta: bool,
    norm_eps: float | None,
) -> Tensor:
    """See `ops.gated_recurrence`."""
    num_tokens, num_heads, v_dim = v.shape
    k_dim, dtype = k.shape[2], v.dtype
    if states.dtype != torch.float32 or states.stride()[1:] != (k_dim * v_dim, v_dim, 1):
        return reference.gated_recurrence(q, k, v, log_decay, beta, states, plan, scale, is_delta, norm_eps)
    if not (dtype in (torch.float32, torch.bfloat16) and q.dtype == k.dtype == dtype):
        q, k, v = q.float(), k.float(), v.float()
    q, k, v = (each if each.stride(2) == 1 else each.contiguous() for each in (q, k, v))
    log_decay, is_keyed = log_decay.float(), log_decay.ndim == 3
    if is_keyed and log_decay.stride(2) != 1:
        log_decay = log_decay.contiguous()
    if beta is not None and beta.dtype != torch.bfloat16:
        beta = beta.float()
    out = torch.empty((num_tokens, num_heads, v_dim), dtype=v.dtype)
    fields: list[int] = []
    for each in (q, k, v, log_decay, beta):
        if each is None:
            fields += 0, 0, 0
        else:
            item, strides = each.element_size(), each.stride()
            fields += each.data_ptr(), strides[0] * item, strides[1] * item
    fields += out.data_ptr(), num_heads * v_dim * out.element_size(), states.data_ptr(), states.stride(0) * 4
    is_beta_bf16 = beta is not None and beta.dtype == torch.bfloat16
    fields += num_heads, num_heads // k.shape[1], k_dim, v_dim, is_keyed, is_beta_bf16
    layout = np.array(fields, np.int64)
    lanes = lanes_of(v_dim)
    run = recurrence_kernel(int(v.dtype == torch.bfloat16), lanes, int(is_delta))
    eps = -1.0 if norm_eps is None else norm_eps
    arguments = layout, np.float32(scale), np.float32(eps), *plan_arrays(plan)
    cost_ns = num_tokens * num_heads * k_dim * v_dim * _NS_PER_ELEMENT
    share_items(run, arguments, plan.num_rows * num_heads * (v_dim // lanes), cost_ns, scratch_bytes(k_dim, lanes))
    return out.to(dtype)
