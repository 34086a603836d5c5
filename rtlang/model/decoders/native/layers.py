"""The two parts of a layer as separate operations: attention and feed-forward, as the layer table describes them.

A part takes the states of a step. It adds its result to the residual in place where its last linear layer can, or else returns the result
for a norm that follows to norm or to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from rtlang.model.layers.attention import StepAttention
from rtlang.model.layers.linear import Linear
from rtlang.model.loading.layer_table import Activation, AttentionConfig, FeedForwardConfig, LayerConfig, QkNorm
from rtlang_kernels import ops
from rtlang_kernels.contract.attention_plan import AttentionPlan
from rtlang_kernels.contract.delta_layer import DeltaLayer
from rtlang_kernels.contract.fused_step import FusedLayer


class LayerStep:
    """What the layers of one step share: positions, slots, rotations, the plan of attention, and memory for its results.

    Args:
        attention: the step.
        plan: of attention, for the geometry of all layers.
        rotations: cosines and sines of each layer with attention.
        states: [num_tokens, hidden_size], for dtype and device.
        eps: of the norms.
    """

    __slots__ = ("backend", "batch", "eps", "kv", "lse", "num_tokens", "out", "plan", "rotations", "states")

    def __init__(
        self,
        attention: StepAttention,
        plan: AttentionPlan,
        rotations: Sequence[tuple[Tensor, Tensor]],
        states: Tensor,
        eps: float,
    ) -> None:
        self.batch, self.kv, self.plan, self.rotations, self.eps = attention.batch, attention.kv, plan, rotations, eps
        self.num_tokens, self.states = len(states), attention.states
        # The functions of the backend, called directly: looking the backend up and checking shapes in each of 7 calls per layer costs
        # as much as one of them.
        self.backend = ops.backend_named(plan.backend)
        # Padding rows of a captured batch are never written; zeros keep their values finite.
        make_out = states.new_zeros if plan.backend == "triton" else states.new_empty
        self.out = make_out((self.num_tokens, plan.num_q_heads, plan.head_dim))
        self.lse = torch.empty((self.num_tokens, plan.num_q_heads), dtype=torch.float32, device=states.device)


@dataclass(frozen=True, slots=True)
class AttentionPart:
    """Attention of a layer: q, k and v in one linear layer, rotation fused with the KV write, paged attention, output linear layer.

    `q_norm` and `k_norm` are [head_dim], or [q_size] and [kv_size], as `config.qk_norm` says, or None. `sinks` are [num_q_heads] or None.
    """

    config: AttentionConfig
    qkv: Linear
    q_norm: Tensor | None
    k_norm: Tensor | None
    output: Linear
    sinks: Tensor | None = None

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers in the order of their use."""
        return self.qkv, self.output

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep, layer: int) -> Tensor | None:
        """Write K and V of states h [num_tokens, hidden_size] and attend. Returns None, or the result that is not added yet.

        Args:
            residual: where the result is added; None for nowhere.
            layer: number of the layer among those with attention, for K and V.
        """
        plan, batch, config, backend = step.plan, step.batch, self.config, step.backend
        num_q, num_kv = plan.num_q_heads, plan.num_kv_heads
        heads = self.qkv(h).view(step.num_tokens, -1, plan.head_dim)
        q, k, v, *gates = heads.split_with_sizes([num_q, num_kv, num_kv, *([num_q] if config.is_gated else [])], 1)
        norms = self.q_norm, self.k_norm
        if config.qk_norm is QkNorm.ALL_HEADS:
            q, k = (
                backend.add_rms_norm(x.flatten(1), None, weight, step.eps).view(x.shape)
                for x, weight in zip((q, k), norms, strict=True)
                if weight is not None
            )
            norms = None, None
        (cos, sin), k_pool, v_pool = step.rotations[layer], step.kv.k[layer], step.kv.v[layer]
        places = cos, sin, batch.positions, k_pool, v_pool, batch.slot_mapping
        backend.rope_append(q, k, v, *places, *norms, step.eps)
        options = plan, config.scale, config.sliding_window, None, config.soft_cap, self.sinks
        backend.paged_attention(q, k_pool, v_pool, *options, step.out, step.lse)
        out = step.out.view(step.num_tokens, -1)
        for gate in gates:
            backend.sigmoid_gate(out, gate.flatten(1))
        return added(self.output, residual, out)


class OtherMixer(Protocol):
    """What is in the place of attention in a layer of another kind."""

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The input and the output projection."""

    @property
    def delta(self) -> DeltaLayer:
        """What is between them."""

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep, layer: int) -> Tensor | None:
        """See `AttentionPart`; `layer` is its number among the layers of its kind."""


@dataclass(frozen=True, slots=True)
class FeedForwardPart:
    """A dense feed-forward part: gate and up in one linear layer that ends in their product where it can, then down."""

    config: FeedForwardConfig
    gate_up: Linear
    down: Linear

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers in the order of their use."""
        return self.gate_up, self.down

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep) -> Tensor | None:
        """Compute states h [num_tokens, hidden_size]. Returns None, or the result that is not added yet.

        Args:
            residual: where the result is added; None for nowhere.
        """
        h = self.gate_up(h)
        if not self.gate_up.is_gated:
            is_gelu = self.config.activation is Activation.GELU
            h = step.backend.gelu_and_mul(h) if is_gelu else step.backend.silu_and_mul(h)
        return added(self.down, residual, h)


class OtherFeedForward(Protocol):
    """A feed-forward part of another kind."""

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers."""

    def add_to(self, residual: Tensor | None, h: Tensor, step: LayerStep) -> Tensor | None:
        """See `FeedForwardPart`."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer; norms are [hidden_size], None where there is none.

    `number`: of the layer among those with attention, or among those with a recurrence.
    """

    config: LayerConfig
    number: int
    attention: AttentionPart | OtherMixer
    feed_forward: FeedForwardPart | OtherFeedForward
    before_attention: Tensor | None
    after_attention: Tensor | None
    before_feed_forward: Tensor | None
    after_feed_forward: Tensor | None

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear layers in the order of their use."""
        return *self.attention.linears, *self.feed_forward.linears

    def forward(self, residual: Tensor, x: Tensor | None, step: LayerStep) -> Tensor | None:
        """Compute the layer on residual + x, which `residual` [num_tokens, hidden_size] becomes; the result is split likewise.

        Args:
            x: not yet added to the residual; None for nothing.
        """
        is_plain = self.config.residual_multiplier == 1.0
        h = normed(residual, x, self.before_attention, step)
        target = residual if is_plain and self.after_attention is None else None
        x = self._branch(self.attention.add_to(target, h, step, self.number), self.after_attention, residual, step)
        h = normed(residual, x, self.before_feed_forward, step)
        target = residual if is_plain and self.after_feed_forward is None else None
        return self._branch(self.feed_forward.add_to(target, h, step), self.after_feed_forward, residual, step)

    def _branch(self, x: Tensor | None, norm: Tensor | None, residual: Tensor, step: LayerStep) -> Tensor | None:
        """The result of a part, normed and scaled; None where it is in the residual."""
        if x is None:
            return None
        if norm is not None:
            x = step.backend.add_rms_norm(x, None, norm, step.eps)
        if self.config.residual_multiplier == 1.0:
            return x
        step.backend.scaled_add(x, residual, self.config.residual_multiplier)
        return None

    def fused(self) -> FusedLayer:
        """The weights for a fused step; all linear layers must be packed, and the feed-forward part dense."""
        qkv, output, gate_up, down = (each.packed for each in self.linears)
        assert qkv is not None
        assert output is not None
        assert gate_up is not None
        assert down is not None
        own = self.attention
        norms = (own.q_norm, own.k_norm) if isinstance(own, AttentionPart) else (None, None)
        delta = None if isinstance(own, AttentionPart) else own.delta
        before = self.before_attention, qkv, *norms, output
        after = self.after_attention, self.after_feed_forward
        return FusedLayer(*before, self.before_feed_forward, gate_up, down, *after, delta)


def normed(residual: Tensor, x: Tensor | None, weight: Tensor | None, step: LayerStep) -> Tensor:
    """The RMS norm of residual + x, which `residual` becomes; without a weight, that sum itself."""
    if weight is None:
        if x is not None:
            step.backend.scaled_add(x, residual, 1.0)
        return residual
    norm = step.backend.add_rms_norm
    return norm(residual, None, weight, step.eps) if x is None else norm(x, residual, weight, step.eps)


def added(linear: Linear, residual: Tensor | None, x: Tensor) -> Tensor | None:
    """The result of a linear layer, or None where it was added to the residual."""
    return linear(x) if residual is None else linear.add_to(residual, x)
