"""The table of what each layer of a model computes, as the native decoder reads it.

A layer is an attention part and a feed-forward part, each with norms around it and a sum into the residual. Families differ only in the
entries of this table; the decoder has no code for a family.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embedding of a layer. `kind` is default, linear or llama3; the other fields apply to the latter two."""

    theta: float = 10000.0
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """The attention part of a layer.

    Attributes:
        rope: rotation of q and k.
        scale: factor of the scores.
        sliding_window: last positions that are attended to; None for all.
        has_qkv_bias, has_output_bias: of the projections.
        has_qk_norm: whether each head of q and k is normed before the rotation.
    """

    rope: RopeConfig
    scale: float
    sliding_window: int | None = None
    has_qkv_bias: bool = False
    has_output_bias: bool = False
    has_qk_norm: bool = False


@dataclass(frozen=True, slots=True)
class FeedForwardConfig:
    """A dense feed-forward part: down(activation(gate(x)) * up(x)), `intermediate_size` wide."""

    intermediate_size: int
    has_bias: bool = False

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
        names: of gate, up and down of an expert there.
    """

    num_experts: int
    num_slots: int
    intermediate_size: int
    is_normalized: bool = True
    shared_size: int | None = None
    path: str = "mlp"
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")

    def num_weights(self, hidden_size: int) -> int:
        """Weights of its matrices."""
        outputs = self.num_experts * (3 * self.intermediate_size + 1)  # one of the router
        if self.shared_size is not None:
            outputs += 3 * self.shared_size + 1
        return hidden_size * outputs


@dataclass(frozen=True, slots=True)
class LayerNorms:
    """Names of a layer's RMS norms in the checkpoint, by their place."""

    before_attention: str = "input_layernorm"
    before_feed_forward: str = "post_attention_layernorm"


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What one layer computes."""

    attention: AttentionConfig
    feed_forward: FeedForwardConfig | ExpertsConfig
    norms: LayerNorms = LayerNorms()


@dataclass(frozen=True, slots=True)
class NativeConfig:
    """Additional parameters of the native decoder, which has one or more layers."""

    rms_norm_eps: float
    layers: tuple[LayerConfig, ...]

    @property
    def sliding_windows(self) -> tuple[int | None, ...]:
        """Sliding window of each layer; None means full attention."""
        return tuple(layer.attention.sliding_window for layer in self.layers)

    @property
    def intermediate_size(self) -> int:
        """Width of the widest feed-forward part, or expert."""
        return max(layer.feed_forward.intermediate_size for layer in self.layers)

    @property
    def has_experts(self) -> bool:
        """Whether a layer has experts."""
        return any(isinstance(layer.feed_forward, ExpertsConfig) for layer in self.layers)
