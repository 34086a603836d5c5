"""The causal convolution: a block of channels walks through the tokens of a row with its last inputs in registers. See `ops.py`.

An item is a row and a block of channels. Weights and states lie in memory channel by channel; shuffles turn them into a vector for each
tap, once an item.
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
from rtlang_kernels.cpu.codegen.llvm_bridge import FLOAT, INT16, INT32, source_digest
from rtlang_kernels.cpu.codegen.pair_vectors import at, fused_add
from rtlang_kernels.cpu.codegen.team_sync import fetch_add
from rtlang_kernels.cpu.codegen.vector_builder import Lanes, literal_values, load, store, typed_intrinsic
from rtlang_kernels.cpu.recurrence.state_vectors import as_floats, silu, zero_block
from rtlang_kernels.cpu.recurrence.state_work import PLAN_TYPES, plan_arrays, share_items
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference import recurrence as reference

LARGEST_WIDTH = 8
_BLOCKS = (64, 32, 16, 8, 4, 2, 1)
_NS_PER_PRODUCT = 1 / 8
# Fields of the int64 layout: addresses, bytes from token to token or slot to slot, and the number of channels. BIAS is 0 for none.
X, X_STRIDE, OUT, OUT_STRIDE, WEIGHT, BIAS, STATES, STATE_STRIDE, NUM_CHANNELS = range(9)

_INT, _INTS = types.int64, types.Array(types.int64, 1, "C")
CONV_TYPES = (_INTS, *PLAN_TYPES, _INT, _INT, _INT)
"""numba types of the arguments of the kernel."""


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def spread(typing_context: Any, source: Any, target: Any, is_bf16: Any, size: Any, taps: Any) -> Any:
    """spread(source, target, is_bf16, size, taps): float32 [taps, size] := stored [size, taps]."""
    constants = literal_values(is_bf16, size, taps)
    if constants is None:
        return None
    line, num_taps = Lanes(bool(constants[0]), constants[1]), constants[2]
    item = INT16 if line.is_bf16 else INT32

    def emit(builder: Any, source: Any, target: Any) -> None:
        for part in range(line.size // line.width):
            group = load(
                builder,
                ir.VectorType(item, line.width * num_taps),
                source,
                part * line.width * num_taps * item.width // 8,
            )
            for tap in range(num_taps):
                picked = ir.Constant(ir.VectorType(INT32, line.width), [num_taps * i + tap for i in range(line.width)])
                vector = builder.shuffle_vector(group, group, picked)
                if line.is_bf16:
                    words = ir.VectorType(INT32, line.width)
                    sixteen = ir.Constant(words, [16] * line.width)
                    vector = builder.shl(builder.zext(vector, words), sixteen)
                store(builder, vector, target, 4 * (tap * line.size + part * line.width))

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size, taps), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def gathered(typing_context: Any, source: Any, target: Any, is_bf16: Any, size: Any, taps: Any) -> Any:
    """gathered(source, target, is_bf16, size, taps): stored [size, taps] := float32 [taps, size], which elements hold exactly."""
    constants = literal_values(is_bf16, size, taps)
    if constants is None:
        return None
    line, num_taps = Lanes(bool(constants[0]), constants[1]), constants[2]
    words = ir.VectorType(INT32, line.width)

    def joined(builder: Any, vectors: list[Any]) -> Any:
        """One vector of all, with undefined lanes after them."""
        while len(vectors) > 1:
            if len(vectors) % 2:
                vectors.append(vectors[-1])
            count = 2 * vectors[0].type.count
            order = ir.Constant(ir.VectorType(INT32, count), list(range(count)))
            vectors = [builder.shuffle_vector(a, b, order) for a, b in zip(vectors[0::2], vectors[1::2], strict=True)]
        return vectors[0]

    def emit(builder: Any, source: Any, target: Any) -> None:
        size = 2 if line.is_bf16 else 4
        for part in range(line.size // line.width):
            vectors = []
            for tap in range(num_taps):
                vector = load(builder, words, source, 4 * (tap * line.size + part * line.width))
                if line.is_bf16:
                    sixteen = ir.Constant(words, [16] * line.width)
                    vector = builder.trunc(builder.lshr(vector, sixteen), ir.VectorType(INT16, line.width))
                vectors.append(vector)
            group = joined(builder, vectors)
            places = [tap * line.width + i for i in range(line.width) for tap in range(num_taps)]
            picked = ir.Constant(ir.VectorType(INT32, len(places)), places)
            store(builder, builder.shuffle_vector(group, group, picked), target, part * line.width * num_taps * size)

    return typed_intrinsic(types.void, (types.int64, types.int64, is_bf16, size, taps), 3, emit)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def convolved(
    typing_context: Any,
    x: Any,
    x_stride: Any,
    out: Any,
    out_stride: Any,
    count: Any,
    weights: Any,
    before: Any,
    is_bf16: Any,
    size: Any,
    width: Any,
    is_gated: Any,
) -> Any:
    """Convolve `count` tokens of a block of channels.

    Args:
        x, out: addresses of the stored lines of the first token, and bytes from one to the next.
        weights: address of float32 [width + 1, size]: the taps, the newest last, and the bias.
        before: address of float32 [width - 1, size]: the inputs before the first token; those before the next one afterwards.
        size, width, is_gated: compile-time constants; `is_gated` applies silu.
    """
    constants = literal_values(is_bf16, size, width, is_gated)
    if constants is None:
        return None
    line, taps, has_gate = Lanes(bool(constants[0]), constants[1], is_ordered=True), constants[2], bool(constants[3])
    floats = ir.VectorType(FLOAT, line.width)

    def emit(
        builder: Any, x: Any, x_stride: Any, out: Any, out_stride: Any, count: Any, weights: Any, before: Any
    ) -> None:
        lines = [at(builder, before, 4 * line.size * tap) for tap in range(taps - 1)]
        held = [[cgutils.alloca_once(builder, floats) for _ in range(line.size // line.width)] for _ in lines]
        for place, slots in zip(lines, held, strict=True):
            for slot, vector in zip(slots, line.load_float(builder, place), strict=True):
                builder.store(vector, slot)
        with cgutils.for_range(builder, count) as loop:
            newest = line.load(builder, at(builder, x, (loop.index, x_stride)))
            results = []
            for part, vector in enumerate(newest):
                inputs = [*(builder.load(slots[part]) for slots in held), vector]
                total = load(builder, floats, weights, 4 * (taps * line.size + part * line.width))
                for tap, each in enumerate(inputs):
                    weight = load(builder, floats, weights, 4 * (tap * line.size + part * line.width))
                    total = fused_add(builder, each, weight, total)
                results.append(silu(builder, total) if has_gate else total)
                for slots, each in zip(held, inputs[1:], strict=True):
                    builder.store(each, slots[part])
            line.store(builder, results, at(builder, out, (loop.index, out_stride)))
        for place, slots in zip(lines, held, strict=True):
            line.store_float(builder, [builder.load(slot) for slot in slots], place)

    arguments = (*(types.int64,) * 7, is_bf16, size, width, is_gated)
    return typed_intrinsic(types.void, arguments, 4, emit)


@cache
def block_of(num_channels: int) -> int:
    """Channels of an item."""
    return next(size for size in _BLOCKS if num_channels % size == 0)


@cache
def conv_kernel(is_bf16: int, block: int, width: int, is_gated: int) -> Callable[..., None]:
    """Compile the convolution for one element type of x, weights and states, one size of blocks, and one number of taps.

    Args of the kernel:
        layout: int64, see above.  The others are as in `gated_recurrence.recurrence_kernel`; an item is a row and a block.
    """
    digest = source_digest()
    item = 2 if is_bf16 else 4
    line, taps = 4 * block, width - 1

    @kernel(is_exact=True)
    def conv(
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
        num_blocks = layout[NUM_CHANNELS] // block
        weights, before = scratch, scratch + (width + 1) * line
        while True:
            place = fetch_add(taken, 1)
            if place >= num_items:
                return
            row, channel = order[place // num_blocks], place % num_blocks * block
            first = np.int64(cu_seqlens[row])
            num_tokens = cu_seqlens[row + 1] - first
            spread(layout[WEIGHT] + channel * width * item, weights, is_bf16, block, width)
            if layout[BIAS]:
                as_floats(layout[BIAS] + channel * item, weights + width * line, is_bf16, block)
            else:
                zero_block(weights + width * line, 1, block)
            states = layout[STATES] + channel * taps * item
            if sources[row] >= 0:
                spread(states + sources[row] * layout[STATE_STRIDE], before, is_bf16, block, taps)
            else:
                zero_block(before, taps, block)
            x = layout[X] + first * layout[X_STRIDE] + channel * item
            out = layout[OUT] + first * layout[OUT_STRIDE] + channel * item
            done = np.int64(0)
            for mark in range(cu_marks[row], cu_marks[row + 1] + 1):
                end = np.int64(mark_ends[mark]) if mark < cu_marks[row + 1] else num_tokens
                start, target = x + done * layout[X_STRIDE], out + done * layout[OUT_STRIDE]
                strides = layout[X_STRIDE], layout[OUT_STRIDE]
                convolved(
                    start, strides[0], target, strides[1], end - done, weights, before, is_bf16, block, width, is_gated
                )
                if mark < cu_marks[row + 1]:
                    gathered(before, states + mark_slots[mark] * layout[STATE_STRIDE], is_bf16, block, taps)
                done = end

    return conv


def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, states: Tensor, plan: StatePlan, activation: str | None
) -> Tensor:
    """See `ops.causal_conv`."""
    num_channels, width = weight.shape
    others = (weight, states) if bias is None else (weight, states, bias)
    is_uniform = x.dtype in (torch.float32, torch.bfloat16) and all(each.dtype == x.dtype for each in others)
    if not (is_uniform and 2 <= width <= LARGEST_WIDTH and states.stride()[1:] == (width - 1, 1)):
        return reference.causal_conv(x, weight, bias, states, plan, activation)
    x = x if x.stride(1) == 1 else x.contiguous()
    weight, bias = weight.contiguous(), None if bias is None else bias.contiguous()
    out = torch.empty((len(x), num_channels), dtype=x.dtype)
    item, block = x.element_size(), block_of(num_channels)
    layout = np.array(
        (
            x.data_ptr(),
            x.stride(0) * item,
            out.data_ptr(),
            num_channels * item,
            weight.data_ptr(),
            0 if bias is None else bias.data_ptr(),
            states.data_ptr(),
            states.stride(0) * item,
            num_channels,
        ),
        np.int64,
    )
    run = conv_kernel(int(x.dtype == torch.bfloat16), block, width, int(activation is not None))
    cost_ns = len(x) * num_channels * width * _NS_PER_PRODUCT
    share_items(run, (layout, *plan_arrays(plan)), plan.num_rows * (num_channels // block), cost_ns, 8 * width * block)
    return out
