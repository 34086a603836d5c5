"""A forward pass of a Llama-family model over a few tokens, all layers in one compiled call.

Between two calls from Python, the interpreter and torch's dispatcher read memory that the weights have just evicted from the caches; with
small models and few tokens that takes several times as long as the arithmetic. Here no other code runs between the layers, and each
weight is read once, in memory order, for all tokens together.

Values are rounded to the element type wherever the separate operations store them, so the results differ only in the order of summation.
The linear layers come from `linear`; the other operations are the kernels of `layer_ops` and `attention_kernel`, called by address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.fused_step import FusedLayer, FusedShape
from rtlang_kernels.cpu import attention_kernel, layer_ops
from rtlang_kernels.cpu.attention import NO_SINKS, paged_attention, variant_of
from rtlang_kernels.cpu.attention_kernel import CHUNK, attend_kernel, scratch_floats
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.layer_ops import gate_kernel, head_weights, line_block, norm_kernel, rope_kernel
from rtlang_kernels.cpu.linear import SkinnyLinear, linear_kernel, pack_blocks, padded
from rtlang_kernels.host.numba_jit import kernel

NO_CAP = np.float32(0.0)

# Fields of the int64 table of layers: addresses, and whether heads are normalized; a bias follows its weight. The row after the
# last layer only has INPUT_NORM.
INPUT_NORM, QKV, QKV_BIAS, HEADS, HAS_Q_NORM, HAS_K_NORM, K_POOL, V_POOL = range(8)
OUTPUT, OUTPUT_BIAS, POST_NORM, GATE_UP, GATE_UP_BIAS, DOWN, DOWN_BIAS = range(8, 15)
TABLE_FIELDS = 15
# Entries of the int64 vector of buffers: addresses of lines in the element type, float32 for WIDE.
RESIDUAL, X, NORMED, PROJECTED, ATTENDED, GATED_UP, GATED, WIDE, COS, SIN, RESULT = range(11)
NUM_BUFFERS = 11
# Entries of the int64 vector of sizes: elements per token, and bytes per element.
HIDDEN, INNER, Q_SIZE, KV_SIZE, ITEM = range(5)
# Entries of the int64 vector of machine code addresses, see `_addresses`.
LINEAR_HIDDEN, LINEAR_Q, LINEAR_INNER, NORM, GATE, ROPE, ATTEND = range(7)


# numba types of kernel arguments.
_INT, _FLOAT = types.int64, types.float32
_INTS, _TABLE = types.Array(types.int64, 1, "C"), types.Array(types.int64, 2, "C")
_INTS32, _TABLE32 = types.Array(types.int32, 1, "C"), types.Array(types.int32, 2, "C")
_FLOATS = types.Array(types.float32, 1, "C")
_ATTENTION = (_TABLE32, _INT, _INTS32, _INTS32, _TABLE32, _INTS32, _INTS32, _TABLE)  # page_table to calls


@cache
def _addresses(shape: FusedShape) -> NDArray[np.int64]:
    """Machine code addresses of the operations, at the indices LINEAR_HIDDEN to ATTEND."""
    is_bf16 = int(shape.dtype == torch.bfloat16)
    hidden, q, inner = (line_block(size) for size in (shape.hidden_size, shape.q_size, shape.intermediate_size))
    linear, norm = (_INT,) * 8, (*(_INT,) * 6, _FLOAT)
    rope = (_INTS, _INTS, _INTS, _INT, _INT, _INT, _FLOAT)
    attend = (_INTS, _FLOAT, _FLOAT, _FLOATS, *_ATTENTION, _INT, _INT, _FLOATS, _TABLE)
    heads = is_bf16, shape.num_q_heads, shape.num_kv_heads, shape.head_dim, shape.head_dim, shape.head_dim // 2
    group = shape.num_q_heads // shape.num_kv_heads
    found = (
        (linear_kernel(is_bf16, hidden), linear),
        (linear_kernel(is_bf16, q), linear),
        (linear_kernel(is_bf16, inner), linear),
        (norm_kernel(is_bf16, hidden), norm),
        (gate_kernel(is_bf16, inner), (_INT,) * 4),
        (rope_kernel(*heads), rope),
        (attend_kernel(is_bf16, shape.num_kv_heads, group, shape.head_dim, shape.head_dim), attend),
    )
    return np.array([address_of(*pair) for pair in found], np.int64)


@cache
def _kernel() -> Callable[..., None]:
    """Compile the kernel, which serves all shapes.

    Args of the kernel:
        table, buffers, sizes, code: int64, see above.  begin, end: range of stages, see `FusedStep.forward`.
        computes_attention: whether each stage includes attention.
        rotation: a layout of `rope_kernel`; fields that differ between stages are written here.  layout: likewise of `attend_kernel`.
        The other arguments are as in `attend_kernel`.
    """
    digest = source_digest()

    def fused(
        table: Any,
        buffers: Any,
        sizes: Any,
        code: Any,
        begin: Any,
        end: Any,
        computes_attention: Any,
        eps: Any,
        positions: Any,
        slot_mapping: Any,
        rotation: Any,
        layout: Any,
        scale: Any,
        sinks: Any,
        page_table: Any,
        page_size: Any,
        token_row: Any,
        segment_start: Any,
        segments: Any,
        partial_start: Any,
        partial_call: Any,
        calls: Any,
        scratch: Any,
        slots: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        num, num_layers = len(positions), len(table) - 1
        residual, x, normed, wide = buffers[RESIDUAL], buffers[X], buffers[NORMED], buffers[WIDE]
        projected, attended = buffers[PROJECTED], buffers[ATTENDED]
        gated_up, gated = buffers[GATED_UP], buffers[GATED]
        hidden, inner, q_size, kv_size, item = sizes[HIDDEN], sizes[INNER], sizes[Q_SIZE], sizes[KV_SIZE], sizes[ITEM]
        cos, sin = buffers[COS], buffers[SIN]
        for layer in range(begin, end):
            if layer > 0:  # the part of the previous layer after its attention
                row = table[layer - 1]
                weight, bias = row[OUTPUT], row[OUTPUT_BIAS]
                invoke(code[LINEAR_Q], (attended, weight, bias, x, wide, num, q_size, hidden))
                invoke(code[NORM], (x, residual, row[POST_NORM], normed, num, hidden, eps))
                weight, bias = row[GATE_UP], row[GATE_UP_BIAS]
                invoke(code[LINEAR_HIDDEN], (normed, weight, bias, gated_up, wide, num, hidden, 2 * inner))
                invoke(code[GATE], (gated_up, gated, num, inner))
                weight, bias = row[DOWN], row[DOWN_BIAS]
                invoke(code[LINEAR_INNER], (gated, weight, bias, x, wide, num, inner, hidden))
            row = table[layer]
            target = normed if layer < num_layers else buffers[RESULT]
            added, base = (x, residual) if layer > 0 else (residual, 0)
            invoke(code[NORM], (added, base, row[INPUT_NORM], target, num, hidden, eps))
            if layer < num_layers:
                weight, bias = row[QKV], row[QKV_BIAS]
                invoke(code[LINEAR_HIDDEN], (normed, weight, bias, projected, wide, num, hidden, q_size + 2 * kv_size))
                rotation[layer_ops.Q] = projected
                rotation[layer_ops.K] = projected + q_size * item
                rotation[layer_ops.V] = projected + (q_size + kv_size) * item
                rotation[layer_ops.K_POOL], rotation[layer_ops.V_POOL] = row[K_POOL], row[V_POOL]
                rotation[layer_ops.HAS_Q_NORM] = row[HAS_Q_NORM]
                rotation[layer_ops.HAS_K_NORM] = row[HAS_K_NORM]
                invoke(code[ROPE], (rotation, positions, slot_mapping, cos, sin, row[HEADS], eps))
                if computes_attention:
                    layout[attention_kernel.K], layout[attention_kernel.V] = row[K_POOL], row[V_POOL]
                    invoke(
                        code[ATTEND],
                        (
                            layout,
                            scale,
                            NO_CAP,
                            sinks,
                            page_table,
                            page_size,
                            token_row,
                            segment_start,
                            segments,
                            partial_start,
                            partial_call,
                            calls,
                            0,
                            num,
                            scratch,
                            slots,
                        ),
                    )

    compiled: Any = kernel()(fused)
    # Only for these types: calls by address are not type-checked.
    stages = (_TABLE, _INTS, _INTS, _INTS, _INT, _INT, types.boolean, _FLOAT, _INTS, _INTS, _INTS, _INTS)
    compiled.compile((*stages, _FLOAT, _FLOATS, *_ATTENTION, _FLOATS, _TABLE))
    compiled.disable_compile()
    return cast(Callable[..., None], compiled)


class CpuFusedStep:
    """A `FusedStep`. Owns a packed copy of the weights and the working memory of a step."""

    max_tokens = 8  # with more tokens, the matrix units gain more than the calls cost

    def __init__(self, shape: FusedShape, weights: Iterable[FusedLayer], norm: Tensor, head: Tensor) -> None:
        """Pack the weights layer by layer, as `weights` yields them.

        Args:
            norm: the final norm, [hidden_size].  head: [vocab_size, hidden_size].
        Raises:
            ValueError: the shape is not supported.
        """
        if not shape.is_supported:
            raise ValueError(f"shape = {shape}: expected a shape whose is_supported is true")
        self._shape, self._run, self._code = shape, _kernel(), _addresses(shape)
        self.project = SkinnyLinear(head, self.max_tokens)
        self._owned = [norm]  # tensors whose addresses are in the tables
        rows = [self._row(layer) for layer in weights]
        self._table = np.zeros((len(rows) + 1, TABLE_FIELDS), np.int64)
        self._table[:-1] = rows
        self._table[-1, INPUT_NORM] = norm.data_ptr()
        self._pools: tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None = None
        sizes = shape.hidden_size, shape.intermediate_size, shape.q_size, shape.num_kv_heads * shape.head_dim
        self._sizes = np.array((*sizes, shape.dtype.itemsize), np.int64)
        self._buffers = np.zeros(NUM_BUFFERS, np.int64)
        self._allocate(X, shape.hidden_size)
        self._allocate(NORMED, shape.hidden_size)
        self._allocate(GATED_UP, 2 * shape.intermediate_size)
        self._allocate(GATED, shape.intermediate_size)
        self._allocate(WIDE, max(shape.q_size, shape.intermediate_size, shape.hidden_size), torch.float32)
        self._projected = self._allocate(PROJECTED, shape.qkv_size)
        self._attended = self._allocate(ATTENDED, shape.q_size).view(-1, shape.num_q_heads, shape.head_dim)
        self._lse = torch.zeros((self.max_tokens, shape.num_q_heads), dtype=torch.float32)
        item = shape.dtype.itemsize
        self._rotation = np.zeros(layer_ops.ROTATION_FIELDS, np.int64)
        for place in (layer_ops.Q_STRIDE, layer_ops.K_STRIDE, layer_ops.V_STRIDE):
            self._rotation[place] = shape.qkv_size * item
        self._layout = np.zeros(attention_kernel.LAYOUT_FIELDS, np.int64)
        self._layout[attention_kernel.Q] = self._projected.data_ptr()
        self._layout[attention_kernel.Q_STRIDE] = shape.qkv_size * item
        self._layout[attention_kernel.RESULT] = self._attended.data_ptr()
        self._layout[attention_kernel.RESULT_STRIDE] = shape.q_size * item
        self._layout[attention_kernel.RESULT_LSE] = self._lse.data_ptr()
        scratch = np.empty(scratch_floats(shape.num_q_heads, shape.head_dim, shape.head_dim), np.float32)
        self._scratch = scratch, np.empty((2, CHUNK), np.int64)

    def is_worthwhile(self, num_tokens: int) -> bool:
        """See `FusedStep`. Measured with one and two threads; with more, the separate operations are assumed to gain."""
        return num_tokens <= (self.max_tokens if torch.get_num_threads() <= 2 else self.max_tokens // 2)

    def forward(
        self,
        residual: Tensor,
        positions: Tensor,
        slot_mapping: Tensor,
        cos: Tensor,
        sin: Tensor,
        k_pools: tuple[Tensor, ...],
        v_pools: tuple[Tensor, ...],
        plan: AttentionPlan,
        scale: float,
        windows: Sequence[int | None],
    ) -> Tensor:
        """See `FusedStep`."""
        num_tokens = len(residual)
        self._set_pools(k_pools, v_pools)
        result = torch.empty_like(residual)
        buffers = self._buffers
        buffers[RESIDUAL], buffers[RESULT] = residual.data_ptr(), result.data_ptr()
        buffers[COS], buffers[SIN] = cos.data_ptr(), sin.data_ptr()
        variant = variant_of(plan, windows[0], None)
        is_same = all(variant_of(plan, window, None) is variant for window in set(windows))
        computes_attention = is_same and len(variant.chunks) == 1 and not variant.dense

        def run(begin: int, end: int) -> None:
            self._run(
                self._table,
                buffers,
                self._sizes,
                self._code,
                begin,
                end,
                computes_attention,
                np.float32(self._shape.eps),
                positions.numpy(),
                slot_mapping.numpy(),
                self._rotation,
                self._layout,
                np.float32(scale),
                NO_SINKS,
                plan.page_table,
                plan.page_size,
                *variant.arrays,
                variant.calls,
                *self._scratch,
            )

        num_layers = len(windows)
        if computes_attention:
            run(0, num_layers + 1)
            return result
        # Shared prefixes need the matrix units, and long contexts several threads: run attention separately.
        q = self._projected[:num_tokens, : self._shape.q_size].view(num_tokens, -1, self._shape.head_dim)
        out, lse = self._attended[:num_tokens], self._lse[:num_tokens]
        for layer, (k_pool, v_pool, window) in enumerate(zip(k_pools, v_pools, windows, strict=True)):
            run(layer, layer + 1)
            paged_attention(q, k_pool, v_pool, plan, scale, window, None, None, None, out, lse)
        run(num_layers, num_layers + 1)
        return result

    def _allocate(self, place: int, size: int, dtype: torch.dtype | None = None) -> Tensor:
        """Allocate a buffer with lines of `size` elements and record its address at index `place`."""
        buffer = torch.zeros((padded(self.max_tokens), size), dtype=dtype or self._shape.dtype)
        self._buffers[place] = self._own(buffer)
        return buffer

    def _own(self, tensor: Tensor) -> int:
        """Own the tensor and return its address."""
        self._owned.append(tensor)
        return tensor.data_ptr()

    def _row(self, layer: FusedLayer) -> NDArray[np.int64]:
        """Pack one layer and return its table row of addresses."""
        row, head_dim = np.zeros(TABLE_FIELDS, np.int64), self._shape.head_dim
        for place, (weight, bias) in (
            (QKV, layer.qkv),
            (OUTPUT, layer.output),
            (GATE_UP, layer.gate_up),
            (DOWN, layer.down),
        ):
            row[place] = self._own(pack_blocks(weight))
            row[place + 1] = self._own(torch.zeros(len(weight), dtype=torch.float32) if bias is None else bias.float())
        row[INPUT_NORM], row[POST_NORM] = self._own(layer.input_norm), self._own(layer.post_norm)
        row[HEADS] = self._own(head_weights(layer.q_norm, layer.k_norm, head_dim, head_dim))
        row[HAS_Q_NORM], row[HAS_K_NORM] = layer.q_norm is not None, layer.k_norm is not None
        return row

    def _set_pools(self, k_pools: tuple[Tensor, ...], v_pools: tuple[Tensor, ...]) -> None:
        """Record the addresses of these pools, unless they are the same as in the previous step."""
        if self._pools is not None and self._pools[0] is k_pools and self._pools[1] is v_pools:
            return
        self._table[:-1, K_POOL] = [pool.data_ptr() for pool in k_pools]
        self._table[:-1, V_POOL] = [pool.data_ptr() for pool in v_pools]
        item = self._shape.dtype.itemsize
        k_stride, v_stride = k_pools[0].stride(0) * item, v_pools[0].stride(0) * item
        self._rotation[layer_ops.K_POOL_STRIDE], self._rotation[layer_ops.V_POOL_STRIDE] = (
            k_stride,
            v_stride,
        )
        self._layout[attention_kernel.K_STRIDE], self._layout[attention_kernel.V_STRIDE] = k_stride, v_stride
        self._pools = k_pools, v_pools
