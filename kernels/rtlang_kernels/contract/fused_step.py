"""Contract of the fused step: a forward pass through all layers as one operation.

Separate operations cost one call each; with a small model and few tokens the calls cost more than the arithmetic, and threads are woken for
each. A backend may offer all layers as one call. The result has the same bits as that of the separate operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.delta_layer import DeltaLayer
from rtlang_kernels.contract.state_plan import StatePlan

BLOCK = 32  # number of outputs of a linear layer that are computed together


@dataclass(frozen=True, slots=True)
class FusedShape:
    """Sizes of a model with layers of equal sizes, and what they compute alike.

    Attributes:
        dtype: of weights and activations.
        eps: of the RMS norms.
        rotary_dim: leading elements of a head that are rotated; None for all.
        is_gelu: whether gates pass the tanh form of gelu, not silu.
        residual_factor: of results that are added to the residual, see `ops.scaled_add`.
        soft_cap: of the scores; None for none.
    """

    dtype: torch.dtype
    hidden_size: int
    intermediate_size: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    eps: float
    rotary_dim: int | None = None
    is_gelu: bool = False
    residual_factor: float = 1.0
    soft_cap: float | None = None

    @property
    def q_size(self) -> int:
        """Number of query elements of a token."""
        return self.num_q_heads * self.head_dim

    @property
    def qkv_size(self) -> int:
        """Number of query, key and value elements of a token."""
        return (self.num_q_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def kv_size(self) -> int:
        """Number of key elements of a token."""
        return self.num_kv_heads * self.head_dim

    @property
    def rotary_size(self) -> int:
        """Number of elements of a head that are rotated."""
        return self.head_dim if self.rotary_dim is None else self.rotary_dim

    @property
    def is_supported(self) -> bool:
        """Whether the sizes allow a fused step: even numbers of inputs, even head sizes."""
        are_even = all(size % 2 == 0 for size in (self.hidden_size, self.q_size, self.intermediate_size))
        have_heads = self.head_dim % 2 == 0 and self.num_q_heads % self.num_kv_heads == 0 and self.rotary_size % 2 == 0
        return are_even and have_heads and self.dtype in (torch.float32, torch.bfloat16)

    def num_bytes(self, num_layers: int, vocab_size: int) -> int:
        """Bytes of the linear weights of the layers and an output head."""
        layer = self.hidden_size * (self.qkv_size + self.q_size + 3 * self.intermediate_size)
        return (num_layers * layer + vocab_size * self.hidden_size) * self.dtype.itemsize


def check_indices(indices: Tensor, num_rows: int) -> None:
    """Check indices of rows, on a CPU. Raises IndexError if one is not from 0 to num_rows - 1."""
    for place, index in enumerate(indices.tolist()):
        if not 0 <= index < num_rows:
            raise IndexError(f"indices[{place}] = {index}: expected 0 to {num_rows - 1}")


class LinearLayer(Protocol):
    """A linear layer with weights packed by a backend."""

    @property
    def in_features(self) -> int:
        """Number of inputs."""

    @property
    def out_features(self) -> int:
        """Number of results."""

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Multiply x [num_rows, in_features]; returns [num_rows, out_features], or `residual` with the result added in place.

        The bits of a row depend on this row only. Any number of rows, 0 included.
        """

    def rows(self, indices: Tensor) -> Tensor:
        """Rows [n, in_features] of the weight at int64 `indices` [n], as an embedding; not of gated layers.

        Raises:
            IndexError: an index is not from 0 to out_features - 1.
        """


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """Weights of one layer, in the dtype of the shape; q, k, v share one linear layer, and so do gate and up.

    `gate_up` applies the gate (silu), or has twice as many results, gates first, and leaves that to the step. Norm weights are
    [hidden_size] of the shape's dtype, or all of them float32; without one, states are used as they are. `q_norm` and `k_norm` are
    [head_dim], for each head, or [q_size] and [kv_size], for all heads together, or None.

    If `qkv` has further q_size results, these are gates, whose sigmoid multiplies the result of attention. With `delta`, that layer is in
    the place of attention: `qkv` has its inputs, `output` takes its result, and there are no norms of q and k.

    Attributes:
        input_norm, post_norm: before attention and before the feed-forward part.
        output_norm, down_norm: of their results, before these are added to the residual.
    """

    input_norm: Tensor | None
    qkv: LinearLayer
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: LinearLayer
    post_norm: Tensor | None
    gate_up: LinearLayer
    down: LinearLayer
    output_norm: Tensor | None = None
    down_norm: Tensor | None = None
    delta: DeltaLayer | None = None


@dataclass(frozen=True, slots=True)
class FusedStates:
    """The states of a step: tensors of each gated delta layer as in `DeltaLayer`, the same tuples in every step, and the plan."""

    conv: tuple[Tensor, ...]
    matrices: tuple[Tensor, ...]
    plan: StatePlan


class FusedStep(Protocol):
    """All layers of one model. One call at a time. Results depend neither on the number of threads nor on other rows."""

    @property
    def max_tokens(self) -> int:
        """Largest number of tokens of one step."""

    def is_worthwhile(self, num_tokens: int) -> bool:
        """Whether a step of this many tokens is supported and expected to be no slower than the separate operations."""

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
        """Run all layers of one step and write its keys and values. Returns [T, hidden_size] after the final norm.

        Args (tensors contiguous):
            residual: [T, hidden_size], the embeddings of 1 to `max_tokens` tokens; written.
            positions, slot_mapping: int64 [T].
            rotations: cosines and sines of each layer with attention, float32 [any, rotary_size // 2] each; not copied if the object is
                the one before.
            k_pools, v_pools: one per layer with attention, [num_slots, num_kv_heads, head_dim].
            plan: the plan of this step, from the same backend.
            scale: factor of the scores.  windows: sliding window of each layer with attention, None for none.
            states: of gated delta layers; None without such layers.
        """
