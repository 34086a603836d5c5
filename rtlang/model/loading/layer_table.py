"""The table of what each layer of a model computes, as the native decoder reads it.

A layer is an attention part and a feed-forward part, each with norms around it and a sum into the residual. Families differ only in the
entries of this table; the decoder has no code for a family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rtlang_kernels.contract.experts import ExpertGate

_SILU_GATE = ExpertGate()


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embedding of a layer.

    Attributes:
        kind: default, linear, llama3, yarn or longrope (up to its original length).
        factor, low_freq_factor, high_freq_factor, original_max_position_embeddings: of linear, llama3 and yarn.
        rotary_dim: leading elements of a head that are rotated; None for all.
        attention_factor: of cosines and sines.
        beta_fast, beta_slow, truncates: of yarn.
        short_factors: of longrope, one for each rotated pair.
    """

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192
    rotary_dim: int | None = None
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncates: bool = True
    short_factors: tuple[float, ...] = ()


class QkNorm(Enum):
    """Which elements of q and of k an RMS norm covers before the rotation."""

    NONE = "none"
    HEADS = "each head"
    ALL_HEADS = "all heads together"


class Activation(Enum):
    """The function of the gate."""

    SILU = "silu"
    GELU = "gelu"  # the tanh form


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """The attention part of a layer.

    Attributes:
        rope: rotation of q and k; None for no positions.
        scale: factor of the scores.
        sliding_window: last positions that are attended to; None for all.
        soft_cap: scores become soft_cap * tanh(score / soft_cap); None for no cap.
        has_qkv_bias, has_output_bias: of the projections.
        qk_norm: norm of q and k.
        is_joined: whether the checkpoint has q, k and v as one tensor, qkv_proj.
        is_gated: whether the result is multiplied by the sigmoid of a gate, whose outputs follow the query of each head in q_proj.
        has_sinks: whether each head has a logit of its own that receives weight but no value.
    """

    rope: RopeConfig | None
    scale: float
    sliding_window: int | None = None
    soft_cap: float | None = None
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    is_joined: bool = False
    is_gated: bool = False
    has_sinks: bool = False


@dataclass(frozen=True, slots=True)
class DeltaConfig:
    """A gated delta layer in the place of attention.

    Attributes:
        k_dim, v_dim: elements of a head of queries and keys, and of values.
        width: of the convolution, in tokens.
        has_pairs: whether the checkpoint has q, k, v and z as one tensor, and b and a, each key head with its value heads.
    """

    num_k_heads: int
    num_v_heads: int
    k_dim: int
    v_dim: int
    width: int
    has_pairs: bool = False

    @property
    def v_size(self) -> int:
        """Elements of the values of a token."""
        return self.num_v_heads * self.v_dim

    @property
    def num_channels(self) -> int:
        """Channels of the convolution."""
        return 2 * self.num_k_heads * self.k_dim + self.v_size

    @property
    def num_inputs(self) -> int:
        """Outputs of the projection of a token."""
        return self.num_channels + self.v_size + 2 * self.num_v_heads


@dataclass(frozen=True, slots=True)
class FeedForwardConfig:
    """A dense feed-forward part: down(activation(gate(x)) * up(x)), `intermediate_size` wide.

    `is_joined`: whether the checkpoint has gate and up as one tensor, gate_up_proj.
    """

    intermediate_size: int
    has_bias: bool = False
    activation: Activation = Activation.SILU
    is_joined: bool = False

    def num_weights(self, hidden_size: int) -> int:
        """Weights of its matrices."""
        return 3 * hidden_size * self.intermediate_size


@dataclass(frozen=True, slots=True)
class ExpertsConfig:
    """A feed-forward part of experts, each dense and gated, of which a router chooses `num_slots` for each token.

    Attributes:
        intermediate_size: width of an expert.
        is_normalized: whether the weights of a token's experts are divided by their sum.
        shared_size: width of an expert that computes every token, weighted by a gate of its own; None for none.
        path: name of the part in the checkpoint.
        router: name of the router in the part.
        names: of gate, up and down of an expert there.
        size_entry: name of the entry of config.json for the width.
        gate: the activation, for outputs as a tensor of both gate and up has them.
        has_bias: whether the router and the layers of experts have biases.
        is_transposed: whether tensors of all experts are [experts, in, out].
    """

    num_experts: int
    num_slots: int
    intermediate_size: int
    is_normalized: bool = True
    shared_size: int | None = None
    path: str = "mlp"
    router: str = "gate"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    size_entry: str = "moe_intermediate_size"
    gate: ExpertGate = _SILU_GATE
    has_bias: bool = False
    is_transposed: bool = False

    def num_weights(self, hidden_size: int) -> int:
        """Weights of its matrices."""
        outputs = self.num_experts * (3 * self.intermediate_size + 1)  # one of the router
        if self.shared_size is not None:
            outputs += 3 * self.shared_size + 1
        return hidden_size * outputs


@dataclass(frozen=True, slots=True)
class LayerNorms:
    """Names of a layer's RMS norms in the checkpoint by their place; None where there is none.

    Norms before a part take the residual, norms after a part take its result, before it is added to the residual.
    """

    before_attention: str | None = "input_layernorm"
    after_attention: str | None = None
    before_feed_forward: str | None = "post_attention_layernorm"
    after_feed_forward: str | None = None


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What one layer computes. `residual_multiplier`: of the results of both parts when they are added to the residual."""

    attention: AttentionConfig | DeltaConfig
    feed_forward: FeedForwardConfig | ExpertsConfig
    norms: LayerNorms = LayerNorms()
    residual_multiplier: float = 1.0


@dataclass(frozen=True, slots=True)
class NativeConfig:
    """Additional parameters of the native decoder, which has one or more layers.

    Attributes:
        rms_norm_eps: of all norms.
        norms_add_one: whether a norm multiplies by 1 + its weight.
        embedding_multiplier: of embeddings, rounded to their dtype.
        logits_divisor: of logits.
        logits_soft_cap: logits become cap * tanh(logit / cap); None for no cap.
    """

    rms_norm_eps: float
    layers: tuple[LayerConfig, ...]
    norms_add_one: bool = False
    embedding_multiplier: float = 1.0
    logits_divisor: float = 1.0
    logits_soft_cap: float | None = None

    @property
    def attentions(self) -> tuple[AttentionConfig, ...]:
        """The layers with attention."""
        return tuple(layer.attention for layer in self.layers if isinstance(layer.attention, AttentionConfig))

    @property
    def deltas(self) -> tuple[DeltaConfig, ...]:
        """The layers with a recurrence."""
        return tuple(layer.attention for layer in self.layers if isinstance(layer.attention, DeltaConfig))

    @property
    def sliding_windows(self) -> tuple[int | None, ...]:
        """Sliding window of each layer with attention; None means full attention."""
        return tuple(attention.sliding_window for attention in self.attentions)

    @property
    def intermediate_size(self) -> int:
        """Width of the widest feed-forward part, or expert."""
        return max(layer.feed_forward.intermediate_size for layer in self.layers)

    @property
    def has_experts(self) -> bool:
        """Whether a layer has experts."""
        return any(isinstance(layer.feed_forward, ExpertsConfig) for layer in self.layers)

    @property
    def has_joined_tensors(self) -> bool:
        """Whether a checkpoint has q, k and v, or gate and up, of a layer in one tensor."""
        parts = (part for layer in self.layers for part in (layer.attention, layer.feed_forward))
        return any(isinstance(part, AttentionConfig | FeedForwardConfig) and part.is_joined for part in parts)

    @property
    def is_divisible(self) -> bool:
        """Whether ranks can have some of the heads each: a norm of all heads together needs all of them."""
        return all(attention.qk_norm is not QkNorm.ALL_HEADS for attention in self.attentions)

    @property
    def depends_on_length(self) -> bool:
        """Whether the rotation of sequences beyond its original length depends on the longest one."""
        return any(each.rope is not None and each.rope.kind == "longrope" for each in self.attentions)
