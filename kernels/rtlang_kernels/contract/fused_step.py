"""A forward pass over few tokens as one operation: what it is told of a model, and what it promises.

Operations of their own cost a call each, and with a small model and few tokens the calls cost more than the arithmetic. A backend may offer
all layers as one call instead; the result differs from that of its operations in the order of sums only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rtlang_kernels.contract.attention_plan import AttentionPlan

BLOCK = 32  # outputs of a linear layer that are computed together


@dataclass(frozen=True, slots=True)
class FusedShape:
    """Sizes of a Llama-family model whose layers are all alike. `dtype` is of weights and activations, `eps` of the RMS norms."""

    dtype: torch.dtype
    hidden_size: int
    intermediate_size: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    eps: float

    @property
    def q_size(self) -> int:
        """Elements of the queries of a token."""
        return self.num_q_heads * self.head_dim

    @property
    def qkv_size(self) -> int:
        """Elements of the queries, keys and values of a token."""
        return (self.num_q_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def is_supported(self) -> bool:
        """Whether a fused step can be made: linear layers of whole blocks and an even number of inputs, halves of heads to rotate."""
        outputs = (self.hidden_size, self.qkv_size, 2 * self.intermediate_size)
        inputs = (self.q_size, self.intermediate_size)
        are_whole = all(size % BLOCK == 0 for size in outputs) and all(size % 2 == 0 for size in inputs)
        have_heads = self.head_dim % 2 == 0 and self.num_q_heads % self.num_kv_heads == 0
        return are_whole and have_heads and self.dtype in (torch.float32, torch.bfloat16)

    def num_bytes(self, num_layers: int, vocab_size: int) -> int:
        """Bytes of the weights of linear layers and head, of which a fused step holds a copy."""
        layer = self.hidden_size * (self.qkv_size + self.q_size + 3 * self.intermediate_size)
        return (num_layers * layer + vocab_size * self.hidden_size) * self.dtype.itemsize


Weights = tuple[Tensor, Tensor | None]
"""A linear layer: weight [out, in], and bias [out] or None."""


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """Weights of one layer, in the dtype of the shape, with q, k, v and gate, up in one linear each.

    Norms are [hidden_size], but `q_norm` and `k_norm` [head_dim].
    """

    input_norm: Tensor
    qkv: Weights
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Weights
    post_norm: Tensor
    gate_up: Weights
    down: Weights


class FusedStep(Protocol):
    """All layers of one model. One call at a time; results are those of one thread, however many there are."""

    @property
    def max_tokens(self) -> int:
        """The most tokens of one step."""

    def pays(self, num_tokens: int) -> bool:
        """Whether a step of so many tokens is allowed, and no slower than the operations one by one, as far as that is known."""

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
        """All layers of one step, which writes its keys and values; [T, hidden_size], normed by the last norm.

        Args (tensors contiguous):
            residual: [T, hidden_size], the embeddings of 1 to `max_tokens` tokens; written.
            positions, slot_mapping: int64 [T].
            cos, sin: float32 [any, head_dim // 2].
            k_pools, v_pools: one per layer, [num_slots, num_kv_heads, head_dim].
            plan: of this step, from the backend of this object.
            scale: factor of the scores.  windows: sliding window of each layer, None for none.
        """

    def project(self, states: Tensor) -> Tensor:
        """Logits [M, vocab_size] of 1 to `max_tokens` rows that `forward` returned."""
