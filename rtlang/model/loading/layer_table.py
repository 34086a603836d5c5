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


@dataclass(frozen=True, slots=True)
class LayerNorms:
    """Names of a layer's RMS norms in the checkpoint, by their place."""

    before_attention: str = "input_layernorm"
    before_feed_forward: str = "post_attention_layernorm"


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What one layer computes."""

    attention: AttentionConfig
    feed_forward: FeedForwardConfig
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
        """Width of the widest dense feed-forward part."""
        return max(layer.feed_forward.intermediate_size for layer in self.layers)
