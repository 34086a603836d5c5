"""The scan of Mamba: a vector is the state of one channel, and the sums of a group of channels are added up together. See `ops.py`.

An item is a row and a block of channels, whose states stay in the first cache. They are read and written where they are, as in
`gated_recurrence`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from torch import Tensor

from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT32, source_digest
from rtlang_kernels.cpu.codegen.pair_vectors import at, fused_add
from rtlang_kernels.cpu.codegen.team_sync import fetch_add
from rtlang_kernels.cpu.codegen.vector_builder import (
    INT64,
    Lanes,
    constant,
    literal_values,
    load,
    reduce_to,
    splat,
    store,
    typed_intrinsic,
)
from rtlang_kernels.cpu.recurrence.state_vectors import as_floats, exp, zero_block
from rtlang_kernels.cpu.recurrence.state_work import PLAN_TYPES, plan_arrays, share_items
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference import recurrence as reference

MOST_CHANNELS = 64  # of an item
LARGEST_STATE = 64
_NS_PER_ELEMENT = 1 / 4
# Fields of the int64 layout: addresses, and bytes from token to token or slot to slot. A, D are float32; D is 0 for none.
X, X_STRIDE, DELTA, DELTA_STRIDE, B, B_STRIDE, C, C_STRIDE, OUT, OUT_STRIDE, A, D, STATES, STATE_STRIDE = range(14)
NUM_CHANNELS, BLOCK = 14, 15

_INT, _INTS = types.int64, types.Array(types.int64, 1, "C")
SCAN_TYPES = (_INTS, *PLAN_TYPES, _INT, _INT, _INT)
"""numba types of the arguments of the kernel."""


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def scanned(
    typing_context: Any,
    x: Any,
    delta: Any,
    a: Any,
    d: Any,
    both: Any,
    source: Any,
    target: Any,
    out: Any,
    num_groups: Any,
    is_bf16: Any,
    group: Any,
    state_size: Any,
) -> Any:
    """Scan one token of `num_groups` groups of channels.

    Args:
        x, delta, out: addresses of stored lines.  a: of float32 [channels, state_size].  d: of a float32 line, or 0.
        both: address of float32 [2, state_size]: b and c.
        source, target: addresses of the states before and after the token, float32 [channels, state_size].
        is_bf16, group, state_size: compile-time constants.
    """
    constants = literal_values(is_bf16, group, state_size)
    if constants is None:
        return None
    line, state = Lanes(bool(constants[0]), constants[1], is_ordered=True), Lanes(False, constants[2])
    item, size, num_vectors = 2 if line.is_bf16 else 4, 4 * state.size, state.size // state.width
    sums = ir.VectorType(FLOAT, line.size)

    def emit(
        builder: Any,
        x: Any,
        delta: Any,
        a: Any,
        d: Any,
        both: Any,
        source: Any,
        target: Any,
        out: Any,
        num_groups: Any,
    ) -> None:
        inputs_b, inputs_c = state.load_float(builder, both), state.load_float(builder, at(builder, both, size))
        skipped = cgutils.alloca_once(builder, sums)
        with cgutils.for_range(builder, num_groups) as loop:
            (inputs,), (steps,) = (
                line.load(builder, at(builder, each, (loop.index, line.size * item))) for each in (x, delta)
            )
            products = builder.fmul(steps, inputs)
            totals = []
            for channel in range(line.size):
                places = [
                    at(builder, each, (loop.index, line.size * size), channel * size) for each in (a, source, target)
                ]
                step, product = (
                    splat(builder, builder.extract_element(each, INT32(channel)), state.width)
                    for each in (steps, products)
                )
                total = None
                before = state.load_float(builder, places[1])
                for i, rate in enumerate(state.load_float(builder, places[0])):
                    decay = exp(builder, builder.fmul(step, rate))
                    after = fused_add(builder, product, inputs_b[i], builder.fmul(decay, before[i]))
                    store(builder, after, places[2], 4 * state.width * i)
                    first = constant(0.0, state.width) if total is None else total
                    total = fused_add(builder, after, inputs_c[i], first)
                totals.append(total)
            builder.store(_summed(builder, totals), skipped)
            with builder.if_then(builder.icmp_signed("!=", d, INT64(0))):
                factors = load(builder, sums, at(builder, d, (loop.index, 4 * line.size)), 0)
                builder.store(fused_add(builder, factors, inputs, builder.load(skipped)), skipped)
            line.store(builder, [builder.load(skipped)], at(builder, out, (loop.index, line.size * item)))

    assert num_vectors >= 1
    arguments = (*(types.int64,) * 9, is_bf16, group, state_size)
    return typed_intrinsic(types.void, arguments, 3, emit)


def _summed(builder: Any, vectors: list[Any]) -> Any:
    """Emit the vector of the sums of each vector; there are as many as a vector has lanes, or another power of two."""
    width = vectors[0].type.count
    if len(vectors) <= width:
        return reduce_to(builder, vectors, len(vectors), ())
    parts = [reduce_to(builder, vectors[i : i + width], width, ()) for i in range(0, len(vectors), width)]
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(INT32, count), list(range(count)))
        parts = [builder.shuffle_vector(a, b, order) for a, b in zip(parts[0::2], parts[1::2], strict=True)]
    return parts[0]


def group_of(num_channels: int) -> int:
    """Channels whose sums are added up together."""
    return next(size for size in (16, 8, 4, 2, 1) if num_channels % size == 0)


@cache
def scan_kernel(is_bf16: int, group: int, state_size: int) -> Callable[..., None]:
    """Compile the scan for one element type of x, delta, b and c, one `group_of` channels, and one size of states.

    Args of the kernel:
        layout: int64, see above.  The others are as in `gated_recurrence.recurrence_kernel`; an item is a row and BLOCK channels.
    """
    digest = source_digest()
    item, size = 2 if is_bf16 else 4, 4 * state_size

    @kernel(is_exact=True)
    def scan(
        layout: Any,
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
        num_channels, block = layout[NUM_CHANNELS], layout[BLOCK]
        num_blocks = (num_channels + block - 1) // block
        own = scratch + 2 * size
        while True:
            place = fetch_add(taken, 1)
            if place >= num_items:
                return
            row, channel = order[place // num_blocks], place % num_blocks * block
            num_groups = (min(block, num_channels - channel) + group - 1) // group
            first, last = np.int64(cu_seqlens[row]), np.int64(cu_seqlens[row + 1])
            states = layout[STATES] + channel * size
            here = own
            if sources[row] >= 0:
                here = states + sources[row] * layout[STATE_STRIDE]
            else:
                zero_block(own, num_groups * group, state_size)
            mark, last_mark = cu_marks[row], cu_marks[row + 1]
            for token in range(first, last):
                as_floats(layout[B] + token * layout[B_STRIDE], scratch, is_bf16, state_size)
                as_floats(layout[C] + token * layout[C_STRIDE], scratch + size, is_bf16, state_size)
                target = own
                if mark < last_mark and mark_ends[mark] == token + 1 - first:
                    target = states + mark_slots[mark] * layout[STATE_STRIDE]
                    mark += 1
                d = layout[D] + 4 * channel if layout[D] else np.int64(0)
                scanned(
                    layout[X] + token * layout[X_STRIDE] + channel * item,
                    layout[DELTA] + token * layout[DELTA_STRIDE] + channel * item,
                    layout[A] + channel * size,
                    d,
                    scratch,
                    here,
                    target,
                    layout[OUT] + token * layout[OUT_STRIDE] + channel * item,
                    num_groups,
                    is_bf16,
                    group,
                    state_size,
                )
                here = target

    return scan


def is_supported(state_size: int) -> bool:
    """Whether whole vectors hold a state: a power of two up to 16, or a multiple of 16."""
    return 0 < state_size <= LARGEST_STATE and (state_size % 16 == 0 or state_size in (1, 2, 4, 8))


def selective_scan(
    x: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, states: Tensor, plan: StatePlan
) -> Tensor:
    """See `ops.selective_scan`."""
    num_tokens, num_channels = x.shape
    state_size = a.shape[1]
    if not (states.dtype == torch.float32 and states.stride()[1:] == (state_size, 1) and is_supported(state_size)):
        return reference.selective_scan(x, delta, a, b, c, d, states, plan)
    dtype = x.dtype
    if not (dtype in (torch.float32, torch.bfloat16) and delta.dtype == b.dtype == c.dtype == dtype):
        x, delta, b, c = (each.float() for each in (x, delta, b, c))
    x, delta, b, c = (each if each.stride(1) == 1 else each.contiguous() for each in (x, delta, b, c))
    a, d = a.float().contiguous(), None if d is None else d.float().contiguous()
    out = torch.empty((num_tokens, num_channels), dtype=x.dtype)
    item, group = x.element_size(), group_of(num_channels)
    block = max(group, MOST_CHANNELS // group * group)
    strided = [value for each in (x, delta, b, c, out) for value in (each.data_ptr(), each.stride(0) * item)]
    addresses = a.data_ptr(), 0 if d is None else d.data_ptr(), states.data_ptr(), states.stride(0) * 4
    layout = np.array((*strided, *addresses, num_channels, block), np.int64)
    run = scan_kernel(int(x.dtype == torch.bfloat16), group, state_size)
    cost_ns = num_tokens * num_channels * state_size * _NS_PER_ELEMENT
    num_items = plan.num_rows * -(-num_channels // block)
    share_items(run, (layout, *plan_arrays(plan)), num_items, cost_ns, 4 * state_size * (2 + block))
    return out.to(dtype)
