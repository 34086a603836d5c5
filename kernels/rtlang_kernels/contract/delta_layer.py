"""A gated delta layer between its input and its output projection: its weights, and what a backend computes with them.

For each token: a short convolution of queries, keys and values; the delta rule of `ops.gated_recurrence` with normalized queries and keys,
log decay = rates * softplus(a + biases) and beta = sigmoid(b); then rms_norm(o) * norm * silu(z) for each head.

Source: Yang et al. 2025 (Gated DeltaNet).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from rtlang_kernels.contract.state_plan import StatePlan


@dataclass(frozen=True, slots=True)
class DeltaWeights:
    """The weights of a layer.

    Attributes:
        conv: [num_channels, width] in the dtype of the inputs, the weight of the newest one last.
        rates: float32 [num_v_heads], at most 0.  biases: float32 [num_v_heads]. A log decay is rates * softplus(a + biases).
        norm: float32 [v_dim], of the RMS norm of each head.
        num_k_heads, k_dim: of queries and keys.
        eps: of the RMS norm.
    """

    conv: Tensor
    rates: Tensor
    biases: Tensor
    norm: Tensor
    num_k_heads: int
    k_dim: int
    eps: float

    @property
    def num_v_heads(self) -> int:
        """Number of value heads."""
        return len(self.rates)

    @property
    def v_dim(self) -> int:
        """Values of a head."""
        return len(self.norm)

    @property
    def k_size(self) -> int:
        """Elements of the queries of a token, and of its keys."""
        return self.num_k_heads * self.k_dim

    @property
    def v_size(self) -> int:
        """Elements of the values of a token, of their gates, and of the result."""
        return self.num_v_heads * self.v_dim

    @property
    def num_channels(self) -> int:
        """Channels of the convolution: queries, keys, values."""
        return 2 * self.k_size + self.v_size

    @property
    def num_inputs(self) -> int:
        """Elements of a token: queries, keys, values, gates, then b and a, one for each value head."""
        return self.num_channels + self.v_size + 2 * self.num_v_heads

    @property
    def scale(self) -> float:
        """Factor of the queries."""
        return float(self.k_dim**-0.5)


class DeltaLayer(Protocol):
    """A layer made by a backend. One call at a time."""

    def __call__(self, x: Tensor, conv_states: Tensor, matrices: Tensor, plan: StatePlan) -> Tensor:
        """Compute the rows of `plan`: [num_tokens, v_size].

        A token's bits do not depend on how its sequence is divided into rows and steps.

        Args:
            x: [num_tokens, num_inputs], a row's elements contiguous.
            conv_states: [num_slots, num_channels, width - 1].  matrices: float32 [num_slots, num_v_heads, k_dim, v_dim].
        """
