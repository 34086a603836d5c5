"""Reference gated delta layer, from a convolution and a recurrence of any backend."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from rtlang_kernels.contract.delta_layer import DeltaWeights
from rtlang_kernels.contract.state_plan import StatePlan
from rtlang_kernels.reference import recurrence

QK_EPS = 1e-6  # of normalized queries and keys, in every published model


class ReferenceDeltaLayer:
    """See `contract.delta_layer`.

    Args:
        conv, recur: the functions of a backend, this one by default.
    """

    def __init__(
        self,
        weights: DeltaWeights,
        conv: Callable[..., Tensor] = recurrence.causal_conv,
        recur: Callable[..., Tensor] = recurrence.gated_recurrence,
    ) -> None:
        self._weights, self._conv, self._recur = weights, conv, recur

    def __call__(self, x: Tensor, conv_states: Tensor, matrices: Tensor, plan: StatePlan) -> Tensor:
        """See `DeltaLayer`."""
        weights, num_tokens = self._weights, len(x)
        heads, k_size, v_size = weights.num_v_heads, weights.k_size, weights.v_size
        mixed, z, b, a = x.split_with_sizes((weights.num_channels, v_size, heads, heads), 1)
        mixed = self._conv(mixed, weights.conv, None, conv_states, plan, "silu")
        q, k, v = mixed.split_with_sizes((k_size, k_size, v_size), 1)
        q, k = (each.reshape(num_tokens, weights.num_k_heads, weights.k_dim) for each in (q, k))
        v = v.reshape(num_tokens, heads, weights.v_dim)
        # one token at a time, see `recurrence`
        pairs = [(row.float() + weights.biases, other.float()) for row, other in zip(a, b, strict=True)]
        decays = torch.stack([weights.rates * functional.softplus(row) for row, _ in pairs])
        betas = torch.stack([other.sigmoid() for _, other in pairs])
        o = self._recur(q, k, v, decays, betas, matrices, plan, weights.scale, True, QK_EPS).float()
        o = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + weights.eps) * weights.norm
        gates = torch.stack([functional.silu(row.float().contiguous()) for row in z])
        return (o.flatten(1) * gates).to(x.dtype)


def sigmoid_gate(x: Tensor, gate: Tensor) -> None:
    """See `ops.sigmoid_gate`."""
    for row, other in zip(x, gate, strict=True):  # one at a time, see `recurrence`
        row.copy_(row.float() * other.float().contiguous().sigmoid())
