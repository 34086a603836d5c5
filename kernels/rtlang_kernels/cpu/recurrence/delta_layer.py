"""A gated delta layer in one call, which several threads may run together: convolution, gates, recurrence, gated norm.

The convolution and the recurrence are the kernels of `causal_conv` and `gated_recurrence`, called by address. A barrier is between them,
and another one before the norm, whose tokens are shared among threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numba.core import types
from numpy.typing import NDArray
from torch import Tensor

from rtlang_kernels.contract.delta_layer import DeltaLayer, DeltaWeights
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.cpu.codegen.linear_vectors import LINE
from rtlang_kernels.cpu.codegen.llvm_bridge import address_of, invoke, source_digest
from rtlang_kernels.cpu.codegen.sampling_vectors import element_at
from rtlang_kernels.cpu.codegen.team_sync import barrier, yield_address
from rtlang_kernels.cpu.layer_ops import line_block
from rtlang_kernels.cpu.recurrence import causal_conv as conv_part
from rtlang_kernels.cpu.recurrence import gated_recurrence as recurrence_part
from rtlang_kernels.cpu.recurrence.causal_conv import CONV_TYPES, block_of, conv_kernel
from rtlang_kernels.cpu.recurrence.gate_vectors import sigmoid_gated, silu_gated, square_total, store_float
from rtlang_kernels.cpu.recurrence.gated_recurrence import RECURRENCE_TYPES, lanes_of, recurrence_kernel, scratch_bytes
from rtlang_kernels.cpu.recurrence.state_work import PLAN_TYPES, SPLIT_NS, plan_arrays
from rtlang_kernels.cpu.threads import run_team
from rtlang_kernels.host.numba_jit import kernel
from rtlang_kernels.reference import delta_layer as reference
from rtlang_kernels.reference.delta_layer import ReferenceDeltaLayer

ONE, ZERO = np.float32(1.0), np.float32(0.0)
NUM_BARRIERS = 2  # of a call
_NS_PER_ELEMENT = 1 / 20  # see `gated_recurrence`
_ENDED = 1 << 40  # arrivals that release all threads from their barriers

# Fields of the int64 layout of the gates: addresses and bytes from token to token of the projected inputs (x), where the gates z, b and a
# begin in them, in bytes; addresses of rates, biases and norm; of decays and betas, float32 [num_tokens, 2, num_v_heads]; of the result,
# contiguous; the number of heads, and of items of the convolution and the recurrence for each row.
X, X_STRIDE, Z, B, A, RATES, BIASES, NORM, GATES, OUT, NUM_HEADS, CONV_ITEMS, ITEMS, CONV_CODE, CODE, YIELD = range(16)
GATE_FIELDS = 16
_INT, _FLOAT, _INTS = types.int64, types.float32, types.Array(types.int64, 1, "C")
DELTA_TYPES = (_INTS, _INTS, _INTS, _FLOAT, _FLOAT, *PLAN_TYPES, _INT, _INT, _INT, _INT, _INT)
"""numba types of the arguments of the kernel."""


@cache
def delta_kernel(is_bf16: int, v_dim: int) -> Callable[..., None]:
    """Compile the layer for one element type and size of heads.

    Args of the kernel:
        gates, conv, recurrence: int64 layouts, see above, `causal_conv` and `gated_recurrence`.
        scale, eps: float32, of the recurrence and of the norm.
        order, ..., mark_slots: see `state_work`.
        thread, num_threads: which of how many.
        shared: address of three cache lines of counters: arrivals, and items that were taken, zeros at first.
        expected: arrivals before this call.
        scratch: address of `delta_scratch` bytes of this thread.
    """
    digest = source_digest()
    item, block = 2 if is_bf16 else 4, line_block(v_dim)
    num_blocks = v_dim // block
    qk_eps = np.float32(reference.QK_EPS)

    @kernel(is_exact=True)
    def delta(
        gates: Any,
        conv: Any,
        recurrence: Any,
        scale: Any,
        eps: Any,
        order: Any,
        cu_seqlens: Any,
        sources: Any,
        cu_marks: Any,
        mark_ends: Any,
        mark_slots: Any,
        thread: Any,
        num_threads: Any,
        shared: Any,
        expected: Any,
        scratch: Any,
    ) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        plan = order, cu_seqlens, sources, cu_marks, mark_ends, mark_slots
        num_rows, num_tokens, num_heads = len(sources), np.int64(cu_seqlens[len(sources)]), gates[NUM_HEADS]
        first, last = num_tokens * thread // num_threads, num_tokens * (thread + 1) // num_threads
        for token in range(first, last):
            line, target = gates[X] + token * gates[X_STRIDE], gates[GATES] + 8 * token * num_heads
            for head in range(num_heads):
                x = np.float64(element_at(line + gates[A] + head * item, is_bf16))
                x += np.float64(element_at(gates[BIASES] + 4 * head, 0))
                softplus = math.log1p(math.exp(x)) if x <= 20.0 else x
                decay = np.float32(element_at(gates[RATES] + 4 * head, 0) * softplus)
                store_float(target + 4 * head, decay)
                b = np.float64(element_at(line + gates[B] + head * item, is_bf16))
                store_float(target + 4 * (num_heads + head), np.float32(1.0 / (1.0 + math.exp(-b))))
        taken = shared + LINE
        invoke(gates[CONV_CODE], (conv, *plan, num_rows * gates[CONV_ITEMS], taken, scratch))
        expected = barrier(shared, expected, num_threads, gates[YIELD])
        taken += LINE
        invoke(gates[CODE], (recurrence, scale, qk_eps, *plan, num_rows * gates[ITEMS], taken, scratch))
        barrier(shared, expected, num_threads, gates[YIELD])
        size = v_dim * item
        for token in range(first, last):
            z = gates[X] + token * gates[X_STRIDE] + gates[Z]
            out = gates[OUT] + token * num_heads * size
            for head in range(num_heads):
                line, gate, total = out + head * size, z + head * size, ZERO
                for i in range(num_blocks):
                    total += square_total(line + i * block * item, is_bf16, block)
                factor = ONE / np.sqrt(total / np.float32(v_dim) + eps)
                for i in range(num_blocks):
                    skip = i * block * item
                    weight = gates[NORM] + 4 * i * block
                    silu_gated(line + skip, weight, factor, gate + skip, line + skip, is_bf16, block)

    return delta


class DeltaLayouts:
    """The layouts of the kernel for one layer; addresses of a step are set by `place`.

    Attributes:
        gates, conv, recurrence: int64.
        scratch_bytes: working memory of a thread.
        is_bf16: whether elements are.
    """

    def __init__(self, weights: DeltaWeights) -> None:
        dtype = weights.conv.dtype
        item, is_bf16 = dtype.itemsize, int(dtype == torch.bfloat16)
        self.is_bf16 = is_bf16
        lanes, block = lanes_of(weights.v_dim), block_of(weights.num_channels)
        width, heads = weights.conv.shape[1], weights.num_v_heads
        self._weights, self._item = weights, item
        self.gates = np.zeros(GATE_FIELDS, np.int64)
        starts = np.cumsum((weights.num_channels, weights.v_size, heads)) * item
        self.gates[Z : A + 1] = starts
        self.gates[RATES : NORM + 1] = [each.data_ptr() for each in (weights.rates, weights.biases, weights.norm)]
        self.gates[NUM_HEADS : YIELD + 1] = (
            heads,
            weights.num_channels // block,
            heads * (weights.v_dim // lanes),
            address_of(conv_kernel(is_bf16, block, width, 1), CONV_TYPES),
            address_of(recurrence_kernel(is_bf16, lanes, 1), RECURRENCE_TYPES),
            yield_address(),
        )
        self.conv = np.zeros(conv_part.NUM_CHANNELS + 1, np.int64)
        self.conv[conv_part.OUT_STRIDE] = weights.num_channels * item
        self.conv[conv_part.WEIGHT], self.conv[conv_part.NUM_CHANNELS] = weights.conv.data_ptr(), weights.num_channels
        part = recurrence_part
        own = self.recurrence = np.zeros(part.IS_BETA_BF16 + 1, np.int64)
        own[[part.Q_STRIDE, part.K_STRIDE, part.V_STRIDE]] = weights.num_channels * item
        own[[part.Q_HEAD, part.K_HEAD]] = weights.k_dim * item
        own[part.V_HEAD] = weights.v_dim * item
        own[[part.DECAY_STRIDE, part.BETA_STRIDE]] = 8 * heads
        own[[part.DECAY_HEAD, part.BETA_HEAD]] = 4
        own[part.OUT_STRIDE] = weights.v_size * item
        sizes = heads, heads // weights.num_k_heads, weights.k_dim, weights.v_dim
        own[part.NUM_HEADS : part.V_DIM + 1] = sizes
        self.scratch_bytes = max(8 * width * block, scratch_bytes(weights.k_dim, lanes))

    @property
    def arrays(self) -> tuple[NDArray[np.int64], ...]:
        """The first arguments of the kernel."""
        return self.gates, self.conv, self.recurrence

    def place_states(self, conv_states: Tensor, matrices: Tensor) -> None:
        """Set the addresses of states, as of a `DeltaLayer`."""
        self.conv[conv_part.STATES] = conv_states.data_ptr()
        self.conv[conv_part.STATE_STRIDE] = conv_states.stride(0) * self._item
        self.recurrence[recurrence_part.STATES] = matrices.data_ptr()
        self.recurrence[recurrence_part.STATE_STRIDE] = matrices.stride(0) * 4

    def place(self, x: int, x_stride: int, mixed: int, gates: int, out: int) -> None:
        """Set the addresses of a step.

        Args:
            x: inputs, `x_stride` bytes from one token to the next.
            mixed, gates, out: memory for results of the convolution, for gates, and for the result.
        """
        weights, part, own = self._weights, recurrence_part, self.recurrence
        self.gates[X], self.gates[X_STRIDE], self.gates[GATES], self.gates[OUT] = x, x_stride, gates, out
        self.conv[conv_part.X], self.conv[conv_part.X_STRIDE], self.conv[conv_part.OUT] = x, x_stride, mixed
        own[part.Q], own[part.K] = mixed, mixed + weights.k_size * self._item
        own[part.V] = mixed + 2 * weights.k_size * self._item
        own[part.DECAY], own[part.BETA] = gates, gates + 4 * weights.num_v_heads
        own[part.OUT] = out


class CpuDeltaLayer:
    """A `DeltaLayer`. Owns the weights whose addresses are in its layouts."""

    def __init__(self, weights: DeltaWeights) -> None:
        self.weights, self.layouts = weights, DeltaLayouts(weights)
        self._run = delta_kernel(self.layouts.is_bf16, weights.v_dim)

    @classmethod
    def of(cls, weights: DeltaWeights) -> DeltaLayer:
        """The layer; that of the reference for another element type, or more taps than the kernel has."""
        is_known = weights.conv.dtype in (torch.float32, torch.bfloat16)
        has_taps = 2 <= weights.conv.shape[1] <= conv_part.LARGEST_WIDTH
        return cls(weights) if is_known and has_taps else ReferenceDeltaLayer(weights)

    def cost_ns(self, num_tokens: int) -> float:
        """Time of a call on one thread."""
        weights = self.weights
        return num_tokens * weights.num_v_heads * weights.k_dim * weights.v_dim * _NS_PER_ELEMENT

    def __call__(self, x: Tensor, conv_states: Tensor, matrices: Tensor, plan: StatePlan) -> Tensor:
        """See `DeltaLayer`."""
        weights, layouts, num_tokens = self.weights, self.layouts, len(x)
        layouts.place_states(conv_states, matrices)
        out = torch.empty((num_tokens, weights.v_size), dtype=x.dtype)
        mixed = torch.empty((num_tokens, weights.num_channels), dtype=x.dtype)
        gates = torch.empty((num_tokens, 2 * weights.num_v_heads), dtype=torch.float32)
        layouts.place(x.data_ptr(), x.stride(0) * x.itemsize, mixed.data_ptr(), gates.data_ptr(), out.data_ptr())
        num_threads = torch.get_num_threads() if self.cost_ns(num_tokens) >= SPLIT_NS else 1
        size = -(-layouts.scratch_bytes // LINE) * LINE
        memory = np.empty((num_threads * size + 4 * LINE) // 8, np.int64)
        memory[: 4 * LINE // 8] = 0
        shared = -(-memory.ctypes.data // LINE) * LINE
        same = (*layouts.arrays, np.float32(weights.scale), np.float32(weights.eps), *plan_arrays(plan))
        calls = [
            (*same, thread, num_threads, shared, 0, shared + 3 * LINE + thread * size) for thread in range(num_threads)
        ]

        def end_waiting() -> None:
            memory[(shared - memory.ctypes.data) // 8] = _ENDED

        run_team(self._run, calls, end_waiting)
        return out


@cache
def sigmoid_kernel(is_bf16: int, block: int) -> Callable[..., None]:
    """Compile the sigmoid gate for one element type and `line_block`.

    Args of the kernel:
        x, gate: addresses of tokens.  x_stride, gate_stride: bytes from one to the next.  size: elements of a token.
    """
    digest = source_digest()
    step = block * (2 if is_bf16 else 4)

    @kernel(is_exact=True)
    def gating(x: Any, x_stride: Any, gate: Any, gate_stride: Any, num_tokens: Any, size: Any) -> None:
        if digest < 0:  # never true; ties the disk cache to the sources
            return
        for token in range(num_tokens):
            line, other = x + token * x_stride, gate + token * gate_stride
            for i in range(size // block):
                sigmoid_gated(line + i * step, other + i * step, is_bf16, block)

    return gating


def sigmoid_gate(x: Tensor, gate: Tensor) -> None:
    """See `ops.sigmoid_gate`."""
    if x.stride(1) != 1 or gate.stride(1) != 1 or x.dtype != gate.dtype:
        reference.sigmoid_gate(x, gate)
        return
    (num_tokens, size), item = x.shape, x.element_size()
    run = sigmoid_kernel(int(x.dtype == torch.bfloat16), line_block(size))
    run(x.data_ptr(), x.stride(0) * item, gate.data_ptr(), gate.stride(0) * item, num_tokens, size)
