"""A forward pass of a Llama-family model, all layers in one compiled call, which several threads may run together.

Between two calls from Python, the interpreter and torch's dispatcher read memory that the weights have just evicted from the caches; with
small models and few tokens that takes several times as long as the arithmetic. Here no other code runs between the layers, and each
weight is read once, in memory order, for all tokens together.

The operations are the kernels of `fused_linears`, `layer_ops` and `attention_kernel`, called by address: the same code as for separate
operations, so a step has the same bits either way.

Threads take blocks of outputs of a linear layer dynamically, so a thread that other programs slow down takes fewer; norms and rotations are
split by token, attention by KV head and token. Inputs of weights of few bits are quantized by the thread that normed them, or by groups. A
barrier separates operations (`codegen.team_sync`): some seven per layer, at less than a microsecond each, where waking threads for every
operation would cost tens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape, FusedStates, LinearLayer
from rtlang_kernels.cpu import layer_ops
from rtlang_kernels.cpu.attention import attention_kernel
from rtlang_kernels.cpu.attention.attention import NO_SINKS, NO_SPLIT, paged_attention, variant_of
from rtlang_kernels.cpu.attention.attention_kernel import ATTEND_TYPES, LAYOUT_FIELDS, attend_kernel
from rtlang_kernels.cpu.attention.attention_layout import layout_of
from rtlang_kernels.cpu.codegen.linear_vectors import LINE, STEP
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.team_sync import barrier, yield_address
from rtlang_kernels.cpu.fused.fused_deltas import COUNTERS, FUSED_DELTA_TYPES, FusedDeltas, are_supported
from rtlang_kernels.cpu.fused.fused_linears import (
    GROUPS,
    IS_SPLIT,
    MULTIPLY_TYPES,
    SITES,
    TILE,
    FusedLinears,
    is_supported,
    multiply_kernel,
    quantize,
)
from rtlang_kernels.cpu.layer_ops import (
    gate_kernel,
    has_float_weight,
    head_weights,
    line_block,
    norm_kernel,
    rope_kernel,
    scaled_add_kernel,
)
from rtlang_kernels.cpu.low_bit_inputs import QUANTIZE_TYPES, quantize_kernel
from rtlang_kernels.cpu.recurrence.delta_layer import sigmoid_kernel
from rtlang_kernels.cpu.threads import run_team
from rtlang_kernels.host.numba_jit import kernel

ONE = np.float32(1.0)
MIN_ROWS = 32  # of the working memory, in tokens

# Fields of the int64 table of layers: addresses, 0 for a norm that is missing, and whether heads are normalized. The row after the last
# layer only has INPUT_NORM.
INPUT_NORM, POST_NORM, HEADS, HAS_Q_NORM, HAS_K_NORM, K_POOL, V_POOL, COS, SIN = range(9)
OUTPUT_NORM, DOWN_NORM, Q_NORM, K_NORM = range(9, 13)  # the last two: of all heads together
# Results of QKV and inputs of OUTPUT, of a token; first of the results that are gates, or 0; the number of a delta layer from 1, or 0.
OUTPUTS, INPUTS, GATE, DELTA = range(13, 17)
TABLE_FIELDS = 17
QKV, OUTPUT, GATE_UP, DOWN = range(SITES)
# Entries of the int64 vector of buffers: addresses of lines in the element type, and of quantized inputs. SPLIT are gates and factors,
# BRANCH results that are normed or scaled before they are added to the residual.
RESIDUAL, NORMED, PROJECTED, ATTENDED, SPLIT, GATED, QUANTIZED, BRANCH, RESULT = range(9)
NUM_BUFFERS = 9
# Entries of the int64 vector of sizes: elements per token, bytes per element.
HIDDEN, INNER, Q_SIZE, KV_SIZE, ITEM = range(5)
# Entries of the int64 vector of machine code addresses.
MULTIPLY, QUANTIZE, NORM, ROPE, ATTEND, ACTIVATE, ADD, NORM_Q, NORM_K, YIELD, SIGMOID, DELTA_CODE = range(12)
_ENDED = 1 << 40  # arrivals that release all threads from their barriers
# Bytes of weights times tiles, about a millisecond: a thread wakes in 30 us, and barriers cost more under load.
_MIN_TEAM_WORK = 200_000 * STEP
_SPLIT_NS = 10_000  # attention of a layer that is worth splitting among threads that run anyway


# numba types of kernel arguments.
_INT, _FLOAT = types.int64, types.float32
_INTS, _TABLE = types.Array(types.int64, 1, "C"), types.Array(types.int64, 2, "C")


@cache
def _addresses(
    shape: FusedShape, is_quantized: bool, is_split: bool, has_branches: bool, has_wide_norms: bool, is_float: bool, has_gates: bool
) -> NDArray[np.int64]:  # fmt: skip
    """Machine code addresses of the operations; 0 for those that no layer needs, and for ROPE, which depends on the pools.

    is_float: whether weights of norms are float32 where the element type is not.
    """
    is_bf16 = int(shape.dtype == torch.bfloat16)
    norm = (*(_INT,) * 7, _FLOAT)

    def normed(size: int) -> Callable[..., None]:
        return norm_kernel(is_bf16, line_block(size), int(is_float))

    gate = gate_kernel(is_bf16, line_block(shape.intermediate_size), int(shape.is_gelu))
    operations: list[tuple[Callable[..., None], tuple[Any, ...]] | None] = [  # in the order of their indices
        (multiply_kernel(), MULTIPLY_TYPES),
        (quantize_kernel(is_bf16), QUANTIZE_TYPES) if is_quantized else None,
        (normed(shape.hidden_size), norm),
        None,
        (attend_kernel(), ATTEND_TYPES),
        (gate, (_INT,) * 4) if is_split else None,
        (scaled_add_kernel(is_bf16, line_block(shape.hidden_size)), (*(_INT,) * 4, _FLOAT)) if has_branches else None,
        (normed(shape.q_size), norm) if has_wide_norms else None,
        (normed(shape.kv_size), norm) if has_wide_norms else None,
    ]
    addresses = [0 if operation is None else address_of(*operation) for operation in operations]
    sigmoid = address_of(sigmoid_kernel(is_bf16, line_block(shape.q_size)), (_INT,) * 6) if has_gates else 0
    return np.array([*addresses, yield_address(), sigmoid, 0], np.int64)


@cache
def _rope_address(shape: FusedShape, is_int8: bool) -> int:
    """Machine code address of the rotation for these pools."""
    heads = shape.num_q_heads, shape.num_kv_heads, shape.head_dim, shape.head_dim, shape.rotary_size // 2
    rope = rope_kernel(int(shape.dtype == torch.bfloat16), *heads, int(is_int8))
    return address_of(rope, (_INTS, _INTS, _INTS, _INT, _INT, _INT, _FLOAT))


@kernel(inline=True)
def add_branch(
    code: Any, norm: Any, branch: Any, residual: Any, num_tokens: Any, hidden: Any, stride: Any, factor: Any, eps: Any
) -> None:
    """Norm the results of a branch (unless `norm` is 0), scale them and add them to the residual; all three are addresses."""
    if norm != 0:
        invoke(code[NORM], (branch, 0, norm, branch, num_tokens, hidden, stride, eps))
    invoke(code[ADD], (branch, residual, num_tokens, hidden, factor))


@cache
def fused_kernel() -> Callable[..., None]:
    """Compile the kernel, which serves all shapes.

    Args of the kernel:
        table, parts, sites, buffers, sizes, code: int64, see above and `fused_linears`.
        begin, end: range of stages, see `CpuFusedStep.forward`.
        thread, num_threads: which of how many.  shared: address of their counters, zeros at first.
        delta_counters, delta_scratch: addresses of the counters of delta layers, likewise, and of working memory of this thread.
        delta_gates, ..., mark_slots: see `fused_deltas`.
        computes_attention: whether each stage includes attention, for this thread.
        rotation: a layout of `rope_kernel`; fields that differ between stages are written here.  layout: likewise of `attend_kernel`. Each
            thread has its own.
        The other arguments are as in `attend_kernel`.
    """
    digest = source_digest()

    def fused(
        table: Any,
        parts: Any,
        sites: Any,
        buffers: Any,
        sizes: Any,
        code: Any,
        begin: Any,
        end: Any,
        thread: Any,
        num_threads: Any,
        shared: Any,
        delta_counters: Any,
        delta_scratch: Any,
        computes_attention: Any,
        eps: Any,
        residual_factor: Any,
        delta_gates: Any,
        delta_convs: Any,
        delta_recurrences: Any,
        delta_scale: Any,
        delta_eps: Any,
        row_order: Any,
        cu_seqlens: Any,
        sources: Any,
        cu_marks: Any,
        mark_ends: Any,
        mark_slots: Any,
        positions: Any,
        slot_mapping: Any,
        rotation: Any,
        layout: Any,
        scale: Any,
        soft_cap: Any,
        sinks: Any,
        page_table: Any,
        page_size: Any,
        attention_passes: Any,
        token_positions: Any,
        first_visible: Any,
        num_slots: Any,
        kv_first: Any,
        kv_last: Any,
        scratch: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        num, num_layers = len(positions), len(table) - 1
        residual, normed, projected = buffers[RESIDUAL], buffers[NORMED], buffers[PROJECTED]
        attended, gated, quantized = buffers[ATTENDED], buffers[GATED], buffers[QUANTIZED]
        hidden, inner, q_size, kv_size, item = sizes[HIDDEN], sizes[INNER], sizes[Q_SIZE], sizes[KV_SIZE], sizes[ITEM]
        wide, inside = hidden * item, inner * item
        state_plan = row_order, cu_seqlens, sources, cu_marks, mark_ends, mark_slots
        multiply, quantizing, yield_function = code[MULTIPLY], code[QUANTIZE], code[YIELD]
        first, last = num * thread // num_threads, num * (thread + 1) // num_threads  # tokens of this thread
        own, skip = last - first, first * wide
        own_positions, own_slots = positions[first:last], slot_mapping[first:last]
        branch = buffers[BRANCH]
        expected = np.int64(0)
        team = item, num, num_threads, shared + LINE
        for layer in range(begin, end):
            if layer > 0:  # the part of the previous layer after its attention
                row, place = table[layer - 1], (layer - 1) * SITES
                deep = row[INPUTS] * item
                if row[GATE] != 0:
                    line = row[OUTPUTS] * item
                    gates = projected + first * line + row[GATE] * item
                    invoke(code[SIGMOID], (attended + first * deep, deep, gates, line, own, q_size))
                    expected = barrier(shared, expected, num_threads, yield_function)
                site = sites[place + OUTPUT]
                if site[TILE] > 0:
                    groups = site[GROUPS] * thread // num_threads, site[GROUPS] * (thread + 1) // num_threads
                    quantize(quantizing, site, attended, deep, quantized, num, (0, num), groups)
                    expected = barrier(shared, expected, num_threads, yield_function)
                is_branch = row[OUTPUT_NORM] != 0 or residual_factor != ONE
                added, target = (0, branch) if is_branch else (residual, residual)
                invoke(multiply, (parts, site, attended, deep, quantized, added, target, wide, *team))
                expected = barrier(shared, expected, num_threads, yield_function)
                if is_branch:
                    ends = branch + skip, residual + skip
                    add_branch(code, row[OUTPUT_NORM], ends[0], ends[1], own, hidden, wide, residual_factor, eps)
                source = residual
                if row[POST_NORM] != 0:
                    source = normed
                    invoke(code[NORM], (residual + skip, 0, row[POST_NORM], normed + skip, own, hidden, wide, eps))
                site = sites[place + GATE_UP]
                quantize(quantizing, site, source, wide, quantized, num, (first, last), (0, site[GROUPS]))
                expected = barrier(shared, expected, num_threads, yield_function)
                is_split = site[IS_SPLIT] != 0
                target, stride = (buffers[SPLIT], 2 * inside) if is_split else (gated, inside)
                invoke(multiply, (parts, site, source, wide, quantized, 0, target, stride, *team))
                expected = barrier(shared, expected, num_threads, yield_function)
                site = sites[place + DOWN]
                tokens, groups = (
                    (0, num),
                    (site[GROUPS] * thread // num_threads, site[GROUPS] * (thread + 1) // num_threads),
                )
                if is_split:
                    invoke(code[ACTIVATE], (target + first * stride, gated + first * inside, own, inner))
                    tokens, groups = (first, last), (0, site[GROUPS])
                quantize(quantizing, site, gated, inside, quantized, num, tokens, groups)
                if is_split or site[TILE] > 0:
                    expected = barrier(shared, expected, num_threads, yield_function)
                is_branch = row[DOWN_NORM] != 0 or residual_factor != ONE
                added, target = (0, branch) if is_branch else (residual, residual)
                invoke(multiply, (parts, site, gated, inside, quantized, added, target, wide, *team))
                expected = barrier(shared, expected, num_threads, yield_function)
                if is_branch:
                    ends = branch + skip, residual + skip
                    add_branch(code, row[DOWN_NORM], ends[0], ends[1], own, hidden, wide, residual_factor, eps)
            row = table[layer]
            source = residual
            if row[INPUT_NORM] != 0:
                source = normed if layer < num_layers else buffers[RESULT]
                invoke(code[NORM], (residual + skip, 0, row[INPUT_NORM], source + skip, own, hidden, wide, eps))
            if layer < num_layers:
                site = sites[layer * SITES + QKV]
                quantize(quantizing, site, source, wide, quantized, num, (first, last), (0, site[GROUPS]))
                expected = barrier(shared, expected, num_threads, yield_function)
                line = row[OUTPUTS] * item
                invoke(multiply, (parts, site, source, wide, quantized, 0, projected, line, *team))
                expected = barrier(shared, expected, num_threads, yield_function)
                if row[DELTA] != 0:
                    delta = row[DELTA] - 1
                    layouts = delta_gates[delta], delta_convs[delta], delta_recurrences[delta]
                    counters = delta_counters + delta * COUNTERS
                    members = thread, num_threads, counters, np.int64(0), delta_scratch
                    invoke(code[DELTA_CODE], (*layouts, delta_scale, delta_eps, *state_plan, *members))
                    expected = barrier(shared, expected, num_threads, yield_function)
                    continue
                start = projected + first * line
                if row[Q_NORM] != 0:
                    invoke(code[NORM_Q], (start, 0, row[Q_NORM], start, own, q_size, line, eps))
                    keys = start + q_size * item
                    invoke(code[NORM_K], (keys, 0, row[K_NORM], keys, own, kv_size, line, eps))
                rotation[layer_ops.Q] = start
                rotation[layer_ops.K] = start + q_size * item
                rotation[layer_ops.V] = start + (q_size + kv_size) * item
                rotation[layer_ops.K_POOL], rotation[layer_ops.V_POOL] = row[K_POOL], row[V_POOL]
                rotation[layer_ops.HAS_Q_NORM] = row[HAS_Q_NORM]
                rotation[layer_ops.HAS_K_NORM] = row[HAS_K_NORM]
                invoke(code[ROPE], (rotation, own_positions, own_slots, row[COS], row[SIN], row[HEADS], eps))
                expected = barrier(shared, expected, num_threads, yield_function)
                if computes_attention:
                    layout[attention_kernel.K], layout[attention_kernel.V] = row[K_POOL], row[V_POOL]
                    invoke(
                        code[ATTEND],
                        (
                            layout,
                            scale,
                            soft_cap,
                            sinks,
                            page_table,
                            page_size,
                            attention_passes,
                            token_positions,
                            first_visible,
                            num_slots,
                            kv_first,
                            kv_last,
                            scratch,
                        ),
                    )
                expected = barrier(shared, expected, num_threads, yield_function)

    compiled: Any = kernel()(fused)
    # Only for these types: calls by address are not type-checked.
    stages = (*(_TABLE,) * 3, *(_INTS,) * 3, *(_INT,) * 7, types.boolean, *(_FLOAT,) * 2)
    compiled.compile((*stages, *FUSED_DELTA_TYPES, *(_INTS,) * 4, _FLOAT, *ATTEND_TYPES[2:]))
    compiled.disable_compile()
    return cast(Callable[..., None], compiled)


def _linears_of(layer: FusedLayer) -> tuple[LinearLayer, ...]:
    """The linear layers of each site."""
    return layer.qkv, layer.output, layer.gate_up, layer.down


def _wide_norms(layer: FusedLayer, shape: FusedShape) -> tuple[Tensor | None, ...]:
    """The norms of whole states in a layer: INPUT_NORM, POST_NORM, OUTPUT_NORM, DOWN_NORM, and of all heads together, Q_NORM, K_NORM."""
    q_norm, k_norm = layer.q_norm, layer.k_norm
    if q_norm is None or k_norm is None or (len(q_norm) == shape.head_dim and len(k_norm) == shape.head_dim):
        q_norm = k_norm = None
    return layer.input_norm, layer.post_norm, layer.output_norm, layer.down_norm, q_norm, k_norm


class CpuFusedStep:
    """A `FusedStep`. Owns the working memory of a step, which grows with the largest step; shares the packed weights of the layers.

    With 36 million parameters, steps of 40 to 250 tokens take 0.75 to 0.9 of the time of separate operations, whose results are new memory
    each time.
    """

    max_tokens = 1024

    def __init__(self, shape: FusedShape, layers: Sequence[FusedLayer], norm: Tensor) -> None:
        """Take the addresses of the weights.

        Args:
            layers: with linear layers that `fused_linears.is_supported`.  norm: the final norm, [hidden_size].
        Raises:
            ValueError: the shape or a linear layer is not supported, or norms differ in their types.
        """
        if not shape.is_supported:
            raise ValueError(f"shape = {shape}: expected a shape whose is_supported is true")
        if shape.is_gelu and any(layer.gate_up.out_features == shape.intermediate_size for layer in layers):
            raise ValueError("gate_up: expected results that are not gated, for gelu")
        norms = [each for layer in layers for each in _wide_norms(layer, shape) if each is not None]
        is_float = has_float_weight(norm, shape.dtype)
        if any(has_float_weight(each, shape.dtype) != is_float for each in norms):
            raise ValueError("norms: expected weights of one type")
        self._shape, self._run = shape, fused_kernel()
        self._owned: list[Any] = [norm]  # tensors whose addresses are in the tables
        self._deltas = FusedDeltas([layer.delta for layer in layers if layer.delta is not None])
        rows = [self._row(layer) for layer in layers]
        self._table = np.zeros((len(rows) + 1, TABLE_FIELDS), np.int64)
        self._table[:-1] = rows
        self._table[-1, INPUT_NORM] = norm.data_ptr()
        is_delta = np.array([layer.delta is not None for layer in layers])
        self._table[:-1, DELTA], self._attentions = np.cumsum(is_delta) * is_delta, np.flatnonzero(~is_delta)
        has_gates = bool(self._table[:, GATE].any())
        self._outputs = shape.qkv_size + (shape.q_size if has_gates else 0)
        results = None, None, shape.intermediate_size, None
        self._linears = FusedLinears([_linears_of(layer) for layer in layers], results, shape.dtype)
        # A copy: the rotation depends on the pools.
        self._has_branches = shape.residual_factor != 1.0 or bool(self._table[:, OUTPUT_NORM : DOWN_NORM + 1].any())
        has_wide_norms = bool(self._table[:, Q_NORM].any())
        linears = self._linears
        self._code = _addresses(
            shape, linears.is_quantized, linears.has_split, self._has_branches, has_wide_norms, is_float, has_gates
        ).copy()
        self._code[DELTA_CODE] = self._deltas.address
        self._rotations: Sequence[tuple[Tensor, Tensor]] | None = None
        self._pools: tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None = None
        sizes = shape.hidden_size, shape.intermediate_size, shape.q_size, shape.kv_size
        self._sizes = np.array((*sizes, shape.dtype.itemsize), np.int64)
        self._buffers = np.zeros(NUM_BUFFERS, np.int64)
        self._memory: dict[int, Tensor] = {}  # by index of its address in `_buffers`
        self._num_rows = 0  # of the working memory
        item = shape.dtype.itemsize
        self._rotation = np.zeros(layer_ops.ROTATION_FIELDS, np.int64)
        for place in (layer_ops.Q_STRIDE, layer_ops.K_STRIDE, layer_ops.V_STRIDE):
            self._rotation[place] = self._outputs * item
        self._layout = np.zeros(LAYOUT_FIELDS, np.int64)
        # A cache line each: arrivals at barriers, then the blocks that were taken of each part.
        self._shared = np.zeros((1 + len(self._linears.parts)) * LINE // 8, np.int64)
        self._layout[attention_kernel.Q_STRIDE] = self._outputs * item
        self._layout[attention_kernel.RESULT_STRIDE] = shape.q_size * item
        self._reserve(MIN_ROWS)

    @classmethod
    def of(cls, shape: FusedShape, layers: Sequence[FusedLayer], norm: Tensor) -> CpuFusedStep | None:
        """The fused step; None if a linear layer is not supported.

        Raises:
            ValueError: the shape is not supported.
        """
        linears = (linear for layer in layers for linear in _linears_of(layer))
        are_linear = all(is_supported(linear, shape.dtype) for linear in linears)
        deltas = [layer.delta for layer in layers if layer.delta is not None]
        return cls(shape, layers, norm) if are_linear and are_supported(deltas) else None

    def is_worthwhile(self, num_tokens: int) -> bool:
        """See `FusedStep`."""
        return num_tokens <= self.max_tokens

    def _num_threads(self, num_tokens: int) -> int:
        """Threads that run a step."""
        is_worth_team = self._linears.num_bytes(num_tokens) >= _MIN_TEAM_WORK
        return torch.get_num_threads() if is_worth_team else 1

    def forward(
        self,
        residual: Tensor,
        positions: Tensor,
        slot_mapping: Tensor,
        rotations: Sequence[tuple[Tensor, Tensor]],
        k_pools: tuple[Tensor, ...],
        v_pools: tuple[Tensor, ...],
        plan: AttentionPlan,
        scale: float,
        windows: Sequence[int | None],
        states: FusedStates | None = None,
    ) -> Tensor:
        """See `FusedStep`."""
        num_tokens = len(residual)
        self._set_pools(k_pools, v_pools)
        result = torch.empty_like(residual)
        self._reserve(num_tokens)
        linears, buffers = self._linears, self._buffers
        linears.cut(num_tokens)
        buffers[RESIDUAL], buffers[RESULT] = residual.data_ptr(), result.data_ptr()
        if rotations is not self._rotations:
            tables = [(cos.data_ptr(), sin.data_ptr()) for cos, sin in rotations]
            self._table[self._attentions, COS : SIN + 1] = tables
            self._rotations = rotations
        num_threads = self._num_threads(num_tokens)
        split_ns = _SPLIT_NS if num_threads > 1 else NO_SPLIT
        options: dict[str, Any] = {"is_int8": k_pools[0].dtype == torch.int8, "split_ns": split_ns}
        options["splits_heads"] = False  # the layout of attention is that of all steps
        variant = variant_of(plan, windows[0], None, **options)
        is_same = all(variant_of(plan, window, None, **options) is variant for window in set(windows))
        num_layers, places = len(self._table) - 1, (positions.numpy(), slot_mapping.numpy())
        delta_arguments, scratch = self._deltas.arguments(states), self._deltas.scratch(num_threads)

        def run(begin: int, end: int) -> None:
            self._shared[:] = 0
            self._deltas.set_counters(0)
            calls = []
            for thread in range(num_threads):
                index = min(thread, len(variant.chunks) - 1)
                calls.append(
                    (
                        self._table,
                        linears.parts,
                        linears.sites,
                        buffers,
                        self._sizes,
                        self._code,
                        begin,
                        end,
                        thread,
                        num_threads,
                        self._shared.ctypes.data,
                        self._deltas.counters,
                        scratch[thread],
                        is_same and thread == index,
                        np.float32(self._shape.eps),
                        np.float32(self._shape.residual_factor),
                        *delta_arguments,
                        *places,
                        self._rotation.copy(),
                        self._layout.copy(),
                        np.float32(scale),
                        np.float32(self._shape.soft_cap or 0.0),
                        NO_SINKS,
                        plan.page_table,
                        plan.page_size,
                        *variant.chunks[index].arguments,
                        plan.work.addresses[index],
                    )
                )
            run_team(self._run, calls, self._end_waiting)

        if is_same:
            run(0, num_layers + 1)
            return result
        # Windows that differ: run attention separately.
        q = self._projected[:num_tokens, : self._shape.q_size].view(num_tokens, -1, self._shape.head_dim)
        out, lse = self._attended[:num_tokens], self._lse[:num_tokens]
        begin = 0
        for layer, k_pool, v_pool, window in zip(self._attentions.tolist(), k_pools, v_pools, windows, strict=True):
            run(begin, layer + 1)
            paged_attention(q, k_pool, v_pool, plan, scale, window, None, self._shape.soft_cap, None, out, lse)
            begin = layer + 1
        run(begin, num_layers + 1)
        return result

    def _end_waiting(self) -> None:
        """Release all threads from their barriers."""
        self._shared[0] = _ENDED
        self._deltas.set_counters(_ENDED)

    def _reserve(self, num_tokens: int) -> None:
        """Make the working memory large enough for a step of this many tokens."""
        if num_tokens <= self._num_rows:
            return
        shape, num_rows = self._shape, max(MIN_ROWS, 1 << (num_tokens - 1).bit_length())
        linears = self._linears
        for place, size in (
            (NORMED, shape.hidden_size),
            (GATED, shape.intermediate_size),
            (SPLIT, 2 * shape.intermediate_size if linears.has_split else 0),
            (PROJECTED, max(self._outputs, self._deltas.num_inputs)),
            (ATTENDED, max(shape.q_size, self._deltas.v_size)),
            (BRANCH, shape.hidden_size if self._has_branches else 0),
        ):
            self._memory[place] = torch.zeros((num_rows, size), dtype=shape.dtype)
        # The last tile may lack rows.
        num_bytes = (num_rows + linears.max_height) * linears.input_bytes
        self._memory[QUANTIZED] = torch.zeros(num_bytes, dtype=torch.int8)
        for place, memory in self._memory.items():
            self._buffers[place] = memory.data_ptr()
        # layers use as much of their memory as they need
        projected, attended = (self._memory[place].view(-1) for place in (PROJECTED, ATTENDED))
        self._projected = projected[: num_rows * self._outputs].view(num_rows, -1)
        self._attended = attended[: num_rows * shape.q_size].view(num_rows, shape.num_q_heads, shape.head_dim)
        self._deltas.reserve(num_rows, projected.data_ptr(), attended.data_ptr(), shape.dtype.itemsize)
        self._lse = torch.zeros((num_rows, shape.num_q_heads), dtype=torch.float32)
        self._layout[attention_kernel.Q] = self._projected.data_ptr()
        self._layout[attention_kernel.RESULT] = self._attended.data_ptr()
        self._layout[attention_kernel.RESULT_LSE] = self._lse.data_ptr()
        self._num_rows = num_rows

    def _own(self, tensor: Tensor) -> int:
        """Own the tensor and return its address."""
        self._owned.append(tensor)
        return tensor.data_ptr()

    def _row(self, layer: FusedLayer) -> NDArray[np.int64]:
        """Return the table row of addresses of a layer."""
        row, head_dim = np.zeros(TABLE_FIELDS, np.int64), self._shape.head_dim
        q_norm, k_norm = layer.q_norm, layer.k_norm
        places = INPUT_NORM, POST_NORM, OUTPUT_NORM, DOWN_NORM, Q_NORM, K_NORM
        for place, norm in zip(places, _wide_norms(layer, self._shape), strict=True):
            row[place] = 0 if norm is None else self._own(norm)
        if row[Q_NORM]:
            q_norm = k_norm = None
        row[OUTPUTS], row[INPUTS] = layer.qkv.out_features, layer.output.in_features
        if layer.delta is None and layer.qkv.out_features > self._shape.qkv_size:
            row[GATE] = self._shape.qkv_size
        row[HEADS] = self._own(head_weights(q_norm, k_norm, head_dim, head_dim))
        row[HAS_Q_NORM], row[HAS_K_NORM] = q_norm is not None, k_norm is not None
        return row

    def _use_pools_of(self, *, is_int8: bool) -> None:
        """Compile the rotation and attention for pools of int8, or of the type of the shape."""
        shape, entries = self._shape, slice(attention_kernel.NUM_KV_HEADS, None)
        heads = shape.num_kv_heads, shape.num_q_heads // shape.num_kv_heads, shape.head_dim, shape.head_dim
        is_bf16 = int(shape.dtype == torch.bfloat16)
        self._layout[entries] = layout_of(is_bf16, *heads, is_int8=is_int8)[entries]
        self._code[ROPE] = _rope_address(shape, is_int8)

    def _set_pools(self, k_pools: tuple[Tensor, ...], v_pools: tuple[Tensor, ...]) -> None:
        """Record the addresses of these pools, unless they are the same as in the previous step."""
        if self._pools is not None and self._pools[0] is k_pools and self._pools[1] is v_pools:
            return
        self._table[self._attentions, K_POOL] = [pool.data_ptr() for pool in k_pools]
        self._table[self._attentions, V_POOL] = [pool.data_ptr() for pool in v_pools]
        self._use_pools_of(is_int8=k_pools[0].dtype == torch.int8)
        k_stride, v_stride = (pools[0].stride(0) * pools[0].element_size() for pools in (k_pools, v_pools))
        self._rotation[layer_ops.K_POOL_STRIDE], self._rotation[layer_ops.V_POOL_STRIDE] = (
            k_stride,
            v_stride,
        )
        self._layout[attention_kernel.K_STRIDE], self._layout[attention_kernel.V_STRIDE] = k_stride, v_stride
        self._pools = k_pools, v_pools
